"""Where parameters get their values: a safetensors file beside the module, mapped and checked against the module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute

from msc.dialects.arrays import Array
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.attributes import MS_WEIGHTS
from msc.dialects.ms.structure import ParameterOp
from msc.interp import WeightSource
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean, raise_any
from msc.weights.safetensors_file import DTYPES, TensorEntry, TensorFile


class Weights(Mapping[str, Array]):
    """The parameters of a module as read-only arrays that share the mapped file's bytes."""

    def __init__(self, file: TensorFile, names: Iterable[str]) -> None:
        self.path = file.path
        self._file = file
        self._names = dict.fromkeys(names)

    @classmethod
    def open(cls, path: Path, parameters: Iterable[ParameterOp]) -> Weights:
        """Map `path` and check that it has every parameter that is not derived, with its shape and dtype.

        Raises MSC0301 and MSC0302 for the file, then one MscError with all of MSC0303 (missing) and MSC0304 (type).
        """
        file = TensorFile(path)
        stored = [p for p in parameters if p.initialiser is None]
        problems = [d for p in stored if (d := _problem(file, p)) is not None]
        raise_any(problems)
        return cls(file, (p.symbol for p in stored))

    @classmethod
    def of_module(cls, module: ModuleOp, folder: Path) -> WeightSource:
        """The weights of a module whose text lies in `folder`; nothing for a module without stored parameters.

        Raises what `open` raises, and MSC0305 for a file name that leads out of the folder.
        """
        parameters = [op for op in module.ops if isinstance(op, ParameterOp)]
        if all(p.initialiser is not None for p in parameters):
            return {}
        name = module.attributes.get(MS_WEIGHTS)
        if not isinstance(name, StringAttr):
            message = f"the module has parameters, but no attribute {MS_WEIGHTS} names their safetensors file"
            line = f'builtin.module attributes {{{MS_WEIGHTS} = "{_found_in(folder)}"}} {{ ... }}'
            raise MscError(Diagnostic("MSC0306", message, source_location(module), help=f"write {line}"))
        try:
            return cls.open(weights_path(folder, name.data), parameters)
        except MscError as error:
            first = error.diagnostics[0]
            if first.code != "MSC0301" or first.help is not None:
                raise
            advice = "weights are a .safetensors file with a tensor for each ms.parameter; --weights names its folder"
            raise MscError(replace(first, help=advice)) from error

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        return self._file.array(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _found_in(folder: Path) -> str:
    """The only weights in a folder, or a name that stands for one."""
    with suppress(OSError):
        names = [entry.name for entry in folder.iterdir() if entry.suffix == ".safetensors"]
        return names[0] if len(names) == 1 else "FILE.safetensors"
    return "FILE.safetensors"


def weights_path(folder: Path, name: str) -> Path:
    """The file that a module in `folder` may name: one inside it. Raises MSC0305 for any other."""
    parts = PurePosixPath(name).parts
    rooted = PurePosixPath(name).is_absolute() or bool(PureWindowsPath(name).anchor)
    if not parts or rooted or ".." in parts or "\0" in name:
        raise _outside(name, folder)
    path = folder.joinpath(*parts)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise _outside(name, folder)
    return path


def _outside(name: str, folder: Path) -> MscError:
    message = f"weights '{name}' are not inside the folder of the module, '{folder}'"
    return MscError(Diagnostic("MSC0305", message, help="put the file beside the module and name it relative to that"))


def _problem(file: TensorFile, parameter: ParameterOp) -> Diagnostic | None:
    name, location = parameter.symbol, source_location(parameter)
    entry = file.entries.get(name)
    if entry is None:
        help_ = did_you_mean(name, file.entries) or f"the file has {len(file.entries)} tensors"
        return Diagnostic("MSC0303", f"'{file.path}' has no tensor '{name}'", location, help=help_)
    type_ = parameter.type
    if _agrees(entry, type_):
        return None
    message = f"parameter '{name}' is declared {type_}, but '{file.path}' has a {entry.type_text}"
    return Diagnostic("MSC0304", message, location)


def _agrees(entry: TensorEntry, type_: TensorType[Attribute]) -> bool:
    return entry.shape == type_.get_shape() and DTYPES.get(entry.dtype) == dtype_name(type_.element_type)
