"""Arguments that a function updates: `-> (tensor<4xf32> {ms.updates = 1})` leaves the result in argument 1's buffer.

Such an argument is a state of the model: a parameter under training, a cache of keys and values. Before the loop stage
the attribute is a promise about buffers that nothing has yet: values are as without it. Compiled, the caller passes one
buffer, which holds the old value before the call and the new one after it, and is copied nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from msc.ir.locations import source_location
from msc.ir.typed import is_tensor
from msc.support.diagnostics import Diagnostic

UPDATES = "ms.updates"
"""The attribute of a result: the number of the argument that it updates."""

STATE = "state"
"""The role (`ms.role`) of an updated argument from the loop stage on."""

RESULT = "ms.result"
"""The attribute of an updated argument from the loop stage on: which result it is, counted among all of them."""


def updates(function: FuncOp) -> Mapping[int, int]:
    """Numbers of results with the numbers of the arguments that they update."""
    found: dict[int, int] = {}
    for position, attributes in enumerate(function.res_attrs or ()):
        argument = attributes.data.get(UPDATES)
        if isinstance(argument, IntegerAttr):
            found[position] = argument.value.data
    return found


def donation_diagnostics(function: FuncOp) -> Iterator[Diagnostic]:
    """What is wrong with the updates of a function: arguments that are not there, updated twice or of another type."""
    place = source_location(function)
    taken: dict[int, int] = {}
    for result, argument in updates(function).items():
        start = f"result {result} of @{function.sym_name.data} updates argument {argument}, which "
        inputs = function.function_type.inputs.data
        if not 0 <= argument < len(inputs):
            yield Diagnostic("MSC0205", f"{start}it does not have: there are {len(inputs)}", place)
            continue
        if argument in taken:
            yield Diagnostic("MSC0205", f"{start}result {taken[argument]} updates already", place)
        taken[argument] = result
        type_ = function.function_type.outputs.data[result]
        if not _may_be_equal(inputs[argument], type_):
            yield Diagnostic("MSC0201", f"{start}is a {inputs[argument]}, with a {type_}", place)


def _may_be_equal(a: Attribute, b: Attribute) -> bool:
    """Whether two types may be one: unknown dimensions agree with all."""
    if not is_tensor(a) or not is_tensor(b):
        return a == b
    shapes = a.get_shape(), b.get_shape()
    sizes = zip(*shapes, strict=False)
    same = len(shapes[0]) == len(shapes[1]) and all(m == n or DYNAMIC_INDEX in (m, n) for m, n in sizes)
    return same and a.element_type == b.element_type
