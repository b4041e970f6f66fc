"""Checkpoints: parameters written in MindSpore's own form or as safetensors, and read from both.

Nothing that is read is executed: there is no pickle.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from msc.frontend.boundary import elsewhere
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, concrete
from msc.nn.cell import Cell
from msc.ops.operands import is_data
from msc.support.argument_values import described, file_path
from msc.support.arrays import Array
from msc.support.diagnostics import MscError, did_you_mean
from msc.support.files import replacing, write_bytes
from msc.support.other_frameworks import advice_for
from msc.support.plain_files import mapped, opened
from msc.support.wording import a
from msc.train.background import WRITER
from msc.train.encryption import check_key, decrypted, encrypted, mode_of, undecipherable
from msc.train.mindspore_checkpoint import checksum, corrupt, read_tensors, tensors_message, without_checksum

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
    async_save: bool | str = False,
    append_dict: Mapping[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str | None = None,
) -> None:
    """Write parameters: those of a Cell, of a dictionary, or of a list of `{"name": ..., "data": ...}`.

    `append_dict` adds numbers and tensors; `choice_func` of a name says whether it is written. The contents are
    MindSpore's own form, or safetensors with `format="safetensors"` and in a file .safetensors. MindSpore's form may be
    encrypted (`enc_key`, 16, 24 or 32 bytes; `enc_mode` is "AES-GCM" or "AES-CBC"). `crc_check` adds a checksum. A file
    name without suffix gets that of the form. The old file is there until the new one is complete. With `async_save` a
    thread writes the values that parameters have now; the program's end waits for it. Raises MSC0831, MSC0887, MSC0888,
    and MSC0890 for a checkpoint before it that was not written.
    """
    unused("save_checkpoint", integrated_save=integrated_save)
    form = _form(format, enc_key, enc_mode, crc_check)
    if async_save not in (False, True, "thread", "process"):
        message = f"save_checkpoint: async_save is {described(async_save)}; it is a bool, 'thread' or 'process'"
        raise ApiValueError("MSC0887", message)
    arrays = {n: _array(n, v) for n, v in _named(save_obj).items() if choice_func is None or choice_func(n)}
    arrays |= {name: _array(name, value) for name, value in (append_dict or {}).items()}
    path = _path(ckpt_file_name, form)
    is_mindspores = form == "ckpt" or (form is None and path.suffix == ".ckpt")

    def write() -> None:
        if is_mindspores:
            data = tensors_message(arrays)
            data += checksum(data) if crc_check else b""
            write_bytes(path, data if enc_key is None else encrypted(data, enc_key, enc_mode))
        else:
            _write(path, arrays, crc_check)

    if async_save:
        arrays = {name: array.copy() for name, array in arrays.items()}
        WRITER.add(write)
    else:
        WRITER.wait()
        write()


def _form(format: str | None, enc_key: bytes | None, enc_mode: str, crc_check: bool) -> str | None:
    """The form that is asked for: "ckpt", "safetensors", or None for either. Raises MSC0887 and MSC0888."""
    if format not in (None, "ckpt", "safetensors"):
        raise ApiValueError("MSC0887", f"save_checkpoint: format is {described(format)}; it is 'ckpt' or 'safetensors'")
    if enc_key is None:
        return format
    check_key("enc", enc_key, enc_mode)
    if format == "safetensors" or crc_check:
        what = "has no checksum of its own" if crc_check else "has MindSpore's form"
        raise ApiValueError("MSC0888", f"save_checkpoint: an encrypted checkpoint {what}")
    return "ckpt"


def async_ckpt_thread_status() -> bool:
    """Whether checkpoints are being written in the background."""
    return WRITER.is_writing()


def _path(name: str | Path, form: str | None) -> Path:
    path = file_path("ckpt_file_name", name, writes=True)
    suffixes = _SUFFIXES if form is None else (f".{form}",)
    return path if path.suffix in suffixes else path.with_name(f"{path.name}{suffixes[0]}")


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


def _write(path: Path, arrays: Mapping[str, Array], crc_check: bool) -> None:
    """The format: 8 bytes with the length of a JSON header, the header, then the data."""
    header: dict[str, Any] = {"__metadata__": {"crc_num": _checksum(arrays)}} if crc_check else {}
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


def _checksum(arrays: Mapping[str, Array]) -> str:
    """MindSpore's CRC-32 of a safetensors file: of names and elements, in the order of the names."""
    found = 0
    for name in sorted(arrays):
        found = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), zlib.crc32(name.encode(), found))
    return str(found)


def load_checkpoint(
    ckpt_file_name: str | Path,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, Parameter]:
    """The parameters of a checkpoint by name, safetensors or MindSpore's own; loaded into `net` if that is given.

    What a file is, is seen from its contents, whatever `format` says. Names that begin with `filter_prefix`, that do
    not begin with `specify_prefix`, and those that `choice_func` refuses, are left out. `dec_key` and `dec_mode` are
    those of the encryption. With `crc_check` a file must have a checksum; one that has it is always checked.
    Raises MSC0301 for a file that is not there, MSC0302 and MSC0830 for one that is no checkpoint, MSC0888 for a wrong
    key, a key that is missing and an encrypted file that was changed, MSC0889 for one without a checksum.
    """
    if format not in ("ckpt", "safetensors"):
        raise ApiValueError("MSC0887", f"load_checkpoint: format is {described(format)}; it is 'ckpt' or 'safetensors'")
    unused("load_checkpoint", remove_redundancy=remove_redundancy)
    left_out, only = _prefixes(filter_prefix), _prefixes(specify_prefix)

    def wanted(name: str) -> bool:
        named = not name.startswith(left_out) and (not only or name.startswith(only))
        return named and (choice_func is None or choice_func(name))

    WRITER.finish()
    path = file_path("ckpt_file_name", ckpt_file_name)
    if path.is_file() and path.stat().st_size == 0:
        message = f"checkpoint {ckpt_file_name} is empty: the file has 0 bytes, as one whose writing was broken off"
        raise ApiValueError("MSC0830", message, help="load the checkpoint before it, or save again")
    arrays = _read(path, wanted, crc_check) if dec_key is None else _read_encrypted(path, dec_key, dec_mode, wanted)
    found = {name: Parameter(Tensor.of(array), name=name) for name, array in arrays.items()}
    if not found:
        raise ApiValueError("MSC0830", f"checkpoint {ckpt_file_name} has no parameters that are asked for")
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


def _prefixes(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _read_encrypted(path: Path, key: bytes, mode: str, wanted: Callable[[str], bool]) -> dict[str, Array]:
    """The tensors of an encrypted file."""
    try:
        with opened(path) as file:
            data = file.read()
    except OSError as error:
        raise corrupt(str(path), error.strerror or str(error)) from None
    plain = decrypted(data, key, mode, str(path))
    try:
        return read_tensors(plain, str(path), wanted)
    except MscError as error:
        if mode == "AES-GCM":
            raise
        raise undecipherable(str(path), error.diagnostics[0].message) from None


def _read(path: Path, wanted: Callable[[str], bool], crc_check: bool) -> dict[str, Array]:
    """The tensors of a file whose names are wanted, as arrays of their own: the file may change afterwards."""
    from msc.weights.safetensors_file import TensorFile

    try:
        with opened(path) as file:
            start = file.read(9)
        if start.startswith(_PYTORCH):
            advice = 'safetensors.torch.save_file(net.state_dict(), "net.safetensors") writes what msc reads'
            message = f"checkpoint {path} is a file of torch.save, which can run code where it is loaded"
            raise ApiValueError("MSC0830", message, help=advice)
        if encryption := mode_of(start):
            advice = f"load_checkpoint(..., dec_key=..., dec_mode={encryption!r})"
            raise ApiValueError("MSC0888", f"checkpoint {path} is encrypted by {encryption}", help=advice)
        if start[8:] != b"{":
            return read_tensors(memoryview(mapped(path)), str(path), wanted, crc_check)
    except (OSError, ValueError) as error:
        if isinstance(error, MscError):
            raise
        raise corrupt(str(path), getattr(error, "strerror", None) or str(error)) from None
    tensors = TensorFile(path)
    said = tensors.metadata.get("crc_num")
    if crc_check and said is None:
        raise without_checksum(str(path))
    if said is not None and said != _checksum({name: tensors.array(name) for name in tensors.entries}):
        raise corrupt(str(path), "its checksum (crc_num) is another: the file was damaged or changed")
    return {name: np.array(tensors.array(name)) for name in tensors.entries if wanted(name)}


def load_param_into_net(
    net: Any, parameter_dict: Any, strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Give a Cell's parameters the values of those that have their names.

    The result is what was not loaded: the names of the net's parameters that the dictionary does not have, and of those
    in the dictionary that the net does not have. Float types convert into each other, unless `strict_load`.
    Raises MSC0831 for other element types, and shapes that differ; then nothing was loaded.
    """
    unused("load_param_into_net", remove_redundancy=remove_redundancy)
    if not isinstance(net, Cell) or not isinstance(parameter_dict, Mapping):
        advice = 'as in load_param_into_net(net, msc.load_checkpoint("net.ckpt"))'
        raise ApiTypeError("MSC0831", "load_param_into_net takes a Cell and a dictionary of parameters", help=advice)
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


def _converted(file_path: Any, save_path: Any, name_map: Mapping[str, str] | None, pattern: Any, form: str) -> None:
    """Checkpoints of a file or a folder written in another form, beside them or in a folder."""
    source = Path(file_path)
    old = ".ckpt" if form == "safetensors" else ".safetensors"
    files = sorted(source.rglob(f"*{old}")) if source.is_dir() else [source]
    files = [file for file in files if pattern is None or re.search(pattern, file.name)]
    if not files or not source.exists():
        raise ApiValueError("MSC0301", f"there is no checkpoint {source}", help=f"a file {old}, or a folder of some")
    for file in files:
        folder = file.parent if save_path is None else Path(save_path)
        folder.mkdir(parents=True, exist_ok=True)
        found = {(name_map or {}).get(name, name): value for name, value in load_checkpoint(file).items()}
        save_checkpoint(found, folder / f"{file.stem}.{form}", format=form)


def ckpt_to_safetensors(
    file_path: str | Path,
    save_path: str | Path | None = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Write a checkpoint of MindSpore's form, or all of a folder, as safetensors. Raises MSC0301 if there is none."""
    unused("ckpt_to_safetensors", processes_num=processes_num)
    _converted(file_path, save_path, name_map, file_name_regex, "safetensors")


def safetensors_to_ckpt(
    file_path: str | Path,
    save_path: str | Path | None = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Write safetensors, one file or all of a folder, in MindSpore's form. Raises MSC0301 if there are none."""
    unused("safetensors_to_ckpt", processes_num=processes_num)
    _converted(file_path, save_path, name_map, file_name_regex, "ckpt")


def __getattr__(name: str) -> object:
    if name == "export":
        return import_module("msc").export
    return elsewhere("msc.train.serialization", name, ("load_checkpoint", "load_param_into_net", "save_checkpoint"))
