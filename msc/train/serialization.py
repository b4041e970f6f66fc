"""Checkpoints: parameters written as safetensors, and read from that or from MindSpore's own format.

Nothing that is read is executed: there is no pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor, concrete
from msc.nn.cell import Cell
from msc.ops.operands import is_data
from msc.support.argument_values import described, file_path
from msc.support.arrays import Array
from msc.support.diagnostics import MscError, did_you_mean
from msc.support.files import replacing
from msc.support.other_frameworks import advice_for
from msc.support.plain_files import mapped, opened
from msc.support.wording import a

_SUFFIXES = (".ckpt", ".safetensors")
_NAMES = {
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
}
_ALIGNMENT = 8


_PYTORCH = (b"PK\x03\x04", b"\x80\x02", b"\x80\x04")
"""How files of torch.save begin: as a zip archive, or as pickled objects."""


def save_checkpoint(
    save_obj: Cell | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    ckpt_file_name: str | Path,
    integrated_save: bool = True,
    async_save: bool = False,
    append_dict: Mapping[str, Any] | None = None,
    choice_func: Callable[[str], bool] | None = None,
    **_: Any,
) -> None:
    """Write parameters as safetensors: those of a Cell, of a dictionary, or of a list of `{"name": ..., "data": ...}`.

    `append_dict` adds numbers and tensors; `choice_func` of a name says whether it is written. A file name without
    suffix .ckpt or .safetensors gets .safetensors. The old file is there until the new one is complete.
    """
    del integrated_save, async_save
    arrays = {n: _array(n, v) for n, v in _named(save_obj).items() if choice_func is None or choice_func(n)}
    arrays |= {name: _array(name, value) for name, value in (append_dict or {}).items()}
    _write(_path(ckpt_file_name), arrays)


def _path(name: str | Path) -> Path:
    path = file_path("ckpt_file_name", name, writes=True)
    return path if path.suffix in _SUFFIXES else path.with_name(f"{path.name}.safetensors")


def _named(save_obj: Any) -> dict[str, Any]:
    if isinstance(save_obj, Cell):
        return dict(save_obj.parameters_dict())
    if isinstance(save_obj, Mapping):
        return dict(cast(Mapping[str, Any], save_obj))
    if type(save_obj) in (list, tuple):
        return {entry["name"]: entry["data"] for entry in save_obj}
    raise ApiTypeError(
        "MSC0831", f"save_checkpoint takes a Cell, a dictionary or a list, not {a(type(save_obj).__name__)}"
    )


def _array(name: str, value: Any) -> Array:
    if isinstance(value, Tensor):
        return concrete(value, "save_checkpoint")
    if is_data(value):
        return concrete(Tensor(value))
    raise ApiTypeError("MSC0831", f"'{name}' is {a(type(value).__name__)}; a checkpoint holds tensors and numbers")


def _write(path: Path, arrays: Mapping[str, Array]) -> None:
    """The format: 8 bytes with the length of a JSON header, the header, then the data."""
    header: dict[str, Any] = {}
    start = 0
    for name, array in arrays.items():
        offsets = [start, start + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype.name], "shape": list(array.shape), "data_offsets": offsets}
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with replacing(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())


def load_checkpoint(
    ckpt_file_name: str | Path,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
    **_: Any,
) -> dict[str, Parameter]:
    """The parameters of a checkpoint by name, safetensors or MindSpore's own; loaded into `net` if that is given.

    Names that begin with `filter_prefix`, and those that `choice_func` refuses, are left out.
    Raises MSC0301 for a file that is not there, MSC0302 and MSC0830 for one that is no checkpoint.
    """
    prefixes = (filter_prefix,) if isinstance(filter_prefix, str) else tuple(filter_prefix or ())
    arrays = _read(
        file_path("ckpt_file_name", ckpt_file_name),
        lambda name: not name.startswith(prefixes or ("\0",)) and (choice_func is None or choice_func(name)),
    )
    found = {name: Parameter(Tensor.of(array), name=name) for name, array in arrays.items()}
    if not found:
        raise ApiValueError("MSC0830", f"checkpoint {ckpt_file_name} has no parameters that are asked for")
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


def _read(path: Path, wanted: Callable[[str], bool]) -> dict[str, Array]:
    """The tensors of a file whose names are wanted, as arrays of their own: the file may change afterwards."""
    from msc.train.mindspore_checkpoint import corrupt, read_tensors
    from msc.weights.safetensors_file import TensorFile

    try:
        with opened(path) as file:
            start = file.read(9)
        if start.startswith(_PYTORCH):
            advice = 'safetensors.torch.save_file(net.state_dict(), "net.safetensors") writes what msc reads'
            message = f"checkpoint {path} is a file of torch.save, which can run code where it is loaded"
            raise ApiValueError("MSC0830", message, help=advice)
        if start[8:] != b"{":
            return read_tensors(memoryview(mapped(path)), str(path), wanted)
    except (OSError, ValueError) as error:
        if isinstance(error, MscError):
            raise
        raise corrupt(str(path), getattr(error, "strerror", None) or str(error)) from None
    tensors = TensorFile(path)
    return {name: np.array(tensors.array(name)) for name in tensors.entries if wanted(name)}


def load_param_into_net(
    net: Any, parameter_dict: Any, strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Give a Cell's parameters the values of those that have their names.

    The result is what was not loaded: the names of the net's parameters that the dictionary does not have, and of those
    in the dictionary that the net does not have. Float types convert into each other, unless `strict_load`.
    Raises MSC0831 for other element types, and shapes that differ; then nothing was loaded.
    """
    del remove_redundancy
    if not isinstance(net, Cell) or not isinstance(parameter_dict, Mapping):
        raise ApiTypeError("MSC0831", "load_param_into_net takes a Cell and a dictionary of parameters")
    given = cast(Mapping[str, Any], parameter_dict)
    own = net.parameters_dict()
    pairs = [(parameter, given[name]) for name, parameter in own.items() if name in given]
    for parameter, value in pairs:
        _check(parameter, value, strict_load)
    if not pairs and own and given:
        some = next(iter(given))
        raise ApiValueError(
            "MSC0831",
            f"no parameter of the checkpoint, as '{some}', has the name of one of the net, as '{next(iter(own))}'",
            help=did_you_mean(some, own),
        )
    for parameter, value in pairs:
        parameter.set_data(value)
    return [name for name in own if name not in given], [n for n in given if n not in own]


def _check(parameter: Parameter, value: Any, strict: bool) -> None:
    if not isinstance(value, Tensor):
        what = f"'{parameter.name}' in the dictionary is {described(value)}; it is a Parameter or a Tensor"
        raise ApiTypeError("MSC0831", what, help=advice_for(value))
    if value.shape != parameter.shape:
        raise ApiValueError(
            "MSC0831", f"parameter '{parameter.name}' has shape {parameter.shape}, that of the checkpoint {value.shape}"
        )
    same = value.dtype is parameter.dtype
    if not same and (strict or not (value.dtype.is_float and parameter.dtype.is_float)):
        raise ApiTypeError(
            "MSC0831", f"parameter '{parameter.name}' is {parameter.dtype}, that of the checkpoint {value.dtype}"
        )


def __getattr__(name: str) -> object:
    if name != "export":
        raise AttributeError(name)
    return import_module("msc").export
