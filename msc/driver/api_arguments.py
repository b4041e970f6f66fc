"""What `msc.compile` takes: each argument by name, with the function that takes its value or refuses it.

Loads nothing heavy. Every function raises MSC0008, with the argument's name and what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from msc.driver.options import DEFAULT_MEMORY, CompileOptions, Dim, InputValue, parse_size
from msc.support.argument_values import CONVERSION_ERRORS, boolean, file_path, integer, refuse, text
from msc.support.diagnostics import Diagnostic, MscError

_RANGE = 'write a size, or a range with both ends as in (1, 8) or "1..8"'
_DIMS = 'as in dims={"batch": 8} or dims={"batch": (1, 8)}'
_VALUES = 'as in input_values={"axes": [0, 1]}'


def compile_options(given: Mapping[str, object]) -> CompileOptions:
    """The options of a call by the names of its arguments. Raises MSC0008 and what CompileOptions raises."""
    taken = {name: _ARGUMENTS[name](name, value) for name, value in given.items()}
    winograd = taken.pop("winograd", True)
    without = cast("tuple[str, ...]", taken.pop("without", ()))
    return CompileOptions(
        memory=taken.pop("max_memory", DEFAULT_MEMORY),
        without=(*without, *(() if winograd else ("winograd",))),
        **taken,
    )


def _memory(name: str, value: Any) -> int:
    if isinstance(value, str):
        return parse_size(value)
    size = integer(name, value, 'a number of bytes, or a size such as "4G"')
    return size if size > 0 else refuse(name, size, "a size above 0")


def _optional(take: Callable[[str, Any], Path]) -> Callable[[str, Any], Path | None]:
    return lambda name, value: None if value is None else take(name, value)


def _folder(name: str, value: Any) -> Path:
    return file_path(name, value, "the path of a folder")


def _names(name: str, value: Any) -> tuple[str, ...]:
    """Names as a sequence, or in a string with commas as on the command line."""
    if isinstance(value, str):
        return tuple(value.split(",")) if value else ()
    if not isinstance(value, list | tuple | set | frozenset):
        refuse(name, cast(object, value), "a sequence of names", 'as in without=["fusion"]')
    return tuple(text(f"an item of {name}", item, "a name") for item in cast(Iterable[object], value))


def _machine(name: str, value: Any) -> str | None:
    return (
        None
        if value is None
        else text(name, value, 'the name of a machine, such as "native" or "x86-64-v3", or the file of one')
    )


def _threads(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value, "a number of threads, 0 for one on each processor")


def _tuning_file(name: str, value: Any) -> Path:
    """The file must be there: its name goes on into the text of a pipeline. Raises MSC0001."""
    path = file_path(name, value)
    if not path.is_file():
        raise MscError(Diagnostic("MSC0001", f"cannot read '{path}': no such file"))
    if set(str(path)) & {'"', "\n"}:
        refuse(name, str(path), "a path without quotes and line breaks")
    return path


def _mapping(name: str, value: Any, advice: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        refuse(name, cast(object, value), "a mapping from names", advice)
    items = cast(Mapping[object, object], value).items()
    return {text(f"a key of {name}", key, f"names, {advice}"): item for key, item in items}


def _dims(name: str, value: Any) -> Mapping[str, Dim]:
    return {key: _dim(f"{name}['{key}']", size) for key, size in _mapping(name, value, _DIMS).items()}


def _dim(name: str, value: Any) -> Dim:
    """A size, or a range of sizes with both ends. A `range` is refused: its end is excluded, which is easily missed."""
    if isinstance(value, str):
        return _dim_text(name, value)
    if isinstance(value, list | tuple):
        ends = cast("Sequence[object]", value)
        if len(ends) == 2:
            return integer(name, ends[0], "integers as its ends"), integer(name, ends[1], "integers as its ends")
    if isinstance(value, bool) or not hasattr(cast(object, value), "__index__"):
        refuse(name, cast(object, value), "a size or a range of sizes", _RANGE)
    return integer(name, value, "a size or a range of sizes")


def _dim_text(name: str, value: str) -> Dim:
    ends = [end.strip() for end in value.split("..")]
    if len(ends) > 2 or not all(end.isascii() and end.isdigit() and len(end) < 13 for end in ends):
        refuse(name, value, "a size or a range of sizes", _RANGE)
    return int(ends[0]) if len(ends) == 1 else (int(ends[0]), int(ends[1]))


def _input_values(name: str, value: Any) -> Mapping[str, str | InputValue]:
    return {key: _input_value(f"{name}['{key}']", item) for key, item in _mapping(name, value, _VALUES).items()}


def _input_value(name: str, value: Any) -> str | InputValue:
    """An array with its dtype; numbers without one as the command line takes them, "0,1", and of the input's dtype."""
    if isinstance(value, str):
        return value
    import numpy as np

    try:
        array = np.asarray(value)
    except CONVERSION_ERRORS:
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        refuse(name, cast(object, value), "numbers", _VALUES)
    if isinstance(value, np.ndarray | np.generic):
        return InputValue.of(array)
    numbers = cast("list[float]", (array.astype(np.int64) if array.dtype.kind == "b" else array).reshape(-1).tolist())
    return ",".join(map(repr, numbers))


_ARGUMENTS: Mapping[str, Callable[[str, Any], Any]] = MappingProxyType({
    "target": text,
    "threads": _threads,
    "dims": _dims,
    "march": _machine,
    "weights": _optional(_folder),
    "max_memory": _memory,
    "tuned": _optional(_tuning_file),
    "winograd": boolean,
    "flush_subnormals": boolean,
    "check_indices": boolean,
    "precision": text,
    "without": _names,
    "input_values": _input_values,
})  # fmt: skip
