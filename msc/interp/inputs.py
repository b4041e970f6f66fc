"""Checking the inputs of an evaluation against the function's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from msc.interp.arrays import Array, dtype_text, shape_fits, tensor_dtype, type_text
from msc.ir.typed import tensor_type
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

NAME_ATTRIBUTE = "ms.name"
"""The argument attribute that gives an input its public name."""


def input_names(function: FuncOp) -> tuple[str, ...]:
    """The public names of a function's arguments: `ms.name`, or the argument's own name, or its number."""
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    given = [_name(dictionary) for dictionary in attributes] or [None] * len(function.args)
    return tuple(name or arg.name_hint or str(arg.index) for name, arg in zip(given, function.args, strict=True))


def _name(attributes: DictionaryAttr) -> str | None:
    name = attributes.data.get(NAME_ATTRIBUTE)
    return name.data if isinstance(name, StringAttr) else None


def arranged_inputs(function: FuncOp, inputs: Mapping[str, Array] | Sequence[Array]) -> tuple[Array, ...]:
    """The inputs in the order of the arguments, checked. Raises MSC0601 to MSC0604."""
    names = input_names(function)
    ordered = _by_name(names, inputs) if isinstance(inputs, Mapping) else tuple(inputs)
    if len(ordered) != len(names):
        message = f"the model takes {len(names)} inputs ({', '.join(names)}), but {len(ordered)} are given"
        raise MscError(Diagnostic("MSC0601", message))
    for name, argument, array in zip(names, function.args, ordered, strict=True):
        _check(name, argument.type, array)
    return ordered


def _by_name(names: Sequence[str], inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    for given in inputs:
        if given not in names:
            help_ = did_you_mean(given, names) or f"its inputs: {', '.join(names) or 'none'}"
            raise MscError(Diagnostic("MSC0602", f"the model has no input '{given}'", help=help_))
    missing = [name for name in names if name not in inputs]
    if missing:
        raise MscError(Diagnostic("MSC0601", f"no value is given for input {', '.join(map(repr, missing))}"))
    return tuple(inputs[name] for name in names)


def _check(name: str, declared: Attribute, array: Array) -> None:
    type_ = tensor_type(declared)
    if not shape_fits(array, type_):
        raise MscError(
            Diagnostic("MSC0603", f"input '{name}' is a {type_}, but the value given is a {type_text(array)}")
        )
    if array.dtype != tensor_dtype(type_):
        wanted = dtype_text(tensor_dtype(type_))
        message = f"input '{name}' has element type {wanted}, but the value given has {dtype_text(array.dtype)}"
        raise MscError(
            Diagnostic("MSC0604", message, help=f"convert it: array.astype(numpy.{tensor_dtype(type_).name})")
        )
