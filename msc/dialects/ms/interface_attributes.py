"""The attributes by which a model says how it is called: known names, values of their kinds, and no name twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, ShapedType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from msc.dialects.ms.attributes import (
    MS_DTYPE,
    MS_MESH,
    MS_NAME,
    MS_ORIGIN,
    MS_PRODUCER,
    MS_ROLE,
    MS_SHARDING,
    MS_WARNINGS,
    MS_WEIGHTS,
)
from msc.ir.locations import source_location
from msc.ir.storage_order import ANY, LAYOUT
from msc.support.diagnostics import Diagnostic, Location, did_you_mean, raise_any

Problem = str | None


def _text(value: Attribute, type_: Attribute) -> Problem:
    del type_
    return None if isinstance(value, StringAttr) and value.data else 'is a text, as in "x"'


def _dims(value: Attribute, type_: Attribute) -> Problem:
    if not isa(value, ArrayAttr[StringAttr]):
        return 'is a list of texts, one for each dimension, as in ["batch", ""]'
    rank = len(type_.get_shape()) if isinstance(type_, ShapedType) else None
    if rank is not None and len(value) != rank:
        return f"has {len(value)} names, but the tensor has {rank} dimensions"
    return None


def _whole(value: Attribute, type_: Attribute) -> Problem:
    del type_
    return None if isa(value, IntegerAttr) else "is a whole number"


def _order(value: Attribute, type_: Attribute) -> Problem:
    rank = len(type_.get_shape()) if isinstance(type_, ShapedType) else 0
    if value == ANY or (isa(value, ArrayAttr[IntegerAttr]) and sorted(a.value.data for a in value) == [*range(rank)]):
        return None
    return 'is "any", or the order of the axes, as in [1, 0]'


def _any(value: Attribute, type_: Attribute) -> Problem:
    del value, type_
    return None


_TENSOR: Mapping[str, Callable[[Attribute, Attribute], Problem]] = {
    MS_NAME: _text,
    "ms.dims": _dims,
    MS_DTYPE: _text,
    MS_ROLE: _any,
    "ms.valid": _any,
    "ms.updates": _whole,
    LAYOUT: _order,
    "ms.result": _any,
    "ms.structure": _any,
    "ms.range": _any,
    "ms.compact": _any,
    "ms.whole": _any,
    MS_ORIGIN: _any,
    MS_SHARDING: _text,
    "ms.size": _any,
    "ms.sizes": _any,
}
"""What an argument or a result of an entry function may say of itself."""

_RENAMED: Mapping[str, str] = {"ms.live": "ms.valid"}
"""Attributes by their former names."""

_MODULE = (MS_WEIGHTS, MS_WARNINGS, "ms.sizes", "ms.structure", MS_ORIGIN, MS_PRODUCER, "ms.target", MS_MESH)


def check_interface(module: ModuleOp, sources: Mapping[str, str]) -> None:
    """Raises one MscError with an MSC0203 for each attribute that is unknown, of another kind, or a name twice."""
    raise_any(_problems(module, sources))


def _problems(module: ModuleOp, sources: Mapping[str, str]) -> Iterator[Diagnostic]:
    for name in module.attributes:
        if name.startswith("ms.") and name not in _MODULE and did_you_mean(name, _MODULE):
            yield _at(module, sources, f"there is no attribute '{name}' of a module", did_you_mean(name, _MODULE), name)
    for function in module.ops:
        if isinstance(function, FuncOp):
            types = function.function_type
            yield from _of_tensors(function, sources, "argument", function.arg_attrs, types.inputs.data)
            yield from _of_tensors(function, sources, "result", function.res_attrs, types.outputs.data)


def _of_tensors(
    function: FuncOp,
    sources: Mapping[str, str],
    kind: str,
    attributes: ArrayAttr[DictionaryAttr] | None,
    types: Sequence[Attribute],
) -> Iterator[Diagnostic]:
    given = [] if attributes is None else [entry.data for entry in attributes.data]
    known = dict[tuple[bool, str], int]()
    for number, (entry, type_) in enumerate(zip(given, types, strict=False)):
        for name, value in entry.items():
            if name.startswith("ms."):
                yield from _of_one(function, sources, f"{kind} {number}", name, value, type_)
        name = entry.get(MS_NAME)
        if isinstance(name, StringAttr):
            # A result may be called as an argument, also where it is written to an argument of its own.
            key = entry.get(MS_ROLE) == StringAttr("output"), name.data
            if key in known:
                message = f"{kind}s {known[key]} and {number} have one name, '{name.data}'"
                yield _at(function, sources, message, "give each a name of its own", f'"{name.data}"')
            known.setdefault(key, number)


def _of_one(
    function: FuncOp, sources: Mapping[str, str], place: str, name: str, value: Attribute, type_: Attribute
) -> Iterator[Diagnostic]:
    if name not in _TENSOR:
        former = f"it is called '{_RENAMED[name]}' now" if name in _RENAMED else None
        advice = former or did_you_mean(name, _TENSOR) or f"there are {', '.join(_TENSOR)}"
        yield _at(function, sources, f"{place}: there is no attribute '{name}'", advice, name)
        return
    problem = _TENSOR[name](value, type_)
    if problem is not None:
        yield _at(function, sources, f"{place}: '{name}' {problem}", None, name)


def _at(op: Operation, sources: Mapping[str, str], message: str, advice: str | None, word: str = "") -> Diagnostic:
    """At the first `word` from the operation on, or at the operation."""
    location = source_location(op)
    text = sources.get(location.file) if location is not None else None
    if location is None or text is None:
        return Diagnostic("MSC0203", message, location, help=advice)
    lines = text.split("\n")
    for number, line in enumerate(islice(lines, location.line - 1, None), location.line):
        if word and word in line:
            place = Location(location.file, number, line.index(word) + 1)
            return Diagnostic("MSC0203", message, place, line, len(word), help=advice)
    return Diagnostic("MSC0203", message, location, lines[location.line - 1], help=advice)
