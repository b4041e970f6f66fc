"""Pass `lift-sizes`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from msc.analysis.properties import BASIC_OPS, CONSTANTS_ARE_PARAMETERS, UNCLUSTERED
from msc.analysis.valid_extents import ValidExtents
from msc.dialects.arrays import dense_array
from msc.dialects.ms.arithmetic import AddOp, DivOp, MulOp
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.structure import ConstantOp
from msc.dialects.open_sizes import VALID, WHOLE, module_sizes, valid_attribute
from msc.graph.shapes.open_moves import with_computed_indices
from msc.graph.shapes.size_comparison import Comparison, Differing, Sample, differs
from msc.graph.shapes.size_expressions import Linear, Numbers, linear, numbers_of, of_sizes, product, quotient
from msc.ir.contracts import Contract
from msc.ir.entry import entries, find_entry
from msc.ir.locations import source_location
from msc.ir.typed import static_shape
from msc.poly.valid_extents import Factor, Size
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError


@dataclass(frozen=True)
class LiftSizes(ModulePass):
    """Make constants that come from a call's sizes expressions over them, and make sure that all else is alike.

    Takes: basic operations with shapes of the largest sizes (`ms.sizes`), and `samples`: the same model at other sizes,
    as far through the compiler, given by the driver. Gives: the attribute `ms.size` on each constant whose value is
    another at other sizes, but linear in them, and `ms.valid` on each result of @main of which all is computed,
    whatever the sizes, but less is meant; what moves elements along open axes becomes gathers (`open_moves`). Raises
    MSC0208 for everything else in which the model at a sample is not the model here, restricted to what is valid: other
    operations, other indices, other parameters. At the `smallest` sizes, where dimensions of 1 broadcast, the model may
    have other operations; its results have the derived shapes there, too, and its constants the derived values.
    """

    name = "lift-sizes"
    contract = Contract(requires=(BASIC_OPS, UNCLUSTERED), breaks=(CONSTANTS_ARE_PARAMETERS,))
    samples: tuple[Sample, ...] = field(default=(), repr=False)
    smallest: Sample | None = field(default=None, repr=False)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sizes = module_sizes(op)
        if not sizes:
            return
        if not self.samples:
            message = "the module leaves sizes to the call, but is not at hand at other sizes"
            raise MscError(Diagnostic("MSC0208", message, help="start from the model, or from its gk stage"))
        entry, *others = entries(op)
        if others:
            message = "a module with several entry functions leaves sizes to the call"
            raise MscError(
                Diagnostic(
                    "MSC0208",
                    message,
                    source_location(others[0]),
                    help='give the sizes: --dim NAME=8, in Python dims={"NAME": 8}',
                )
            )
        functions = [find_entry(sample.module) for sample in self.samples]
        same = [function for function in functions if function is not None]
        valid = ValidExtents(op, entry, unfinished=True)
        moves = with_computed_indices(entry, valid, same, [sample.sizes for sample in self.samples], sizes)
        valid.follow_to(None)
        found = [Comparison(op, valid, sample, moves) for sample in self.samples]
        differing = [comparison.check() for comparison in found]
        _cut(entry, found, sizes, self.samples)
        at = [sample.sizes for sample in self.samples]
        if self.smallest is not None:
            smallest = Comparison(op, valid, self.smallest, moves)
            smallest.check_results()
            with suppress(DecidedByCall):  # other operations, as dimensions of 1 broadcast
                differing.append(smallest.check())
                at.append(self.smallest.sizes)
        _lift(differing, at, [size.high for size in sizes], valid)


def _lift(found: Sequence[Differing], at: Sequence[Sequence[int]], highest: Sequence[int], valid: ValidExtents) -> None:
    """Give each operand that is other numbers at some of the sizes `at` its expression."""
    for user, number in dict.fromkeys(place for differing in found for place in differing):
        constant = user.operands[number].owner
        assert isinstance(constant, ConstantOp)
        same = [d.get((user, number), constant) for d in found]
        top, values = numbers_of(constant), [numbers_of(other) for other in same]
        known = [value for value in values if value is not None]
        are_whole = len(known) == len(values)
        numbers = linear(top, known, at, highest) if top is not None and are_whole else None
        if numbers is None:
            operation, factors = MulOp, product(top, known, at, highest) if top is not None and are_whole else None
            if factors is None and top is not None:
                factors = _count_of_sum(user, number, [top, *known], [highest, *at], valid)
            if factors is None:
                operation = DivOp
                factors = quotient(dense_array(constant.value), [dense_array(c.value) for c in same], at, highest)
            if factors is None:
                reason = "it computes with a number that is no linear function of the sizes, no product and no quotient"
                raise differs(user, reason)
            user.operands[number] = _of_factors(operation, constant, *factors, highest, user)
        elif isinstance(user, BasicOp) and numbers.is_one_number:
            user.operands[number] = _inserted(of_sizes(constant, numbers.expression(), len(highest)), user)
        else:
            user.operands[number] = _computed(constant, numbers, highest, user)


def _count_of_sum(
    user: Operation, number: int, values: Sequence[Numbers], at: Sequence[Sequence[int]], valid: ValidExtents
) -> tuple[int, Sequence[AffineExpr]] | None:
    """How many elements another operand sums, as a factor and sizes, if that is what `values` are at all sizes."""
    for operand in (value for k, value in enumerate(user.operands) if k != number):
        for count in valid.reduced_by(operand):
            opened = [size for size in count if size.used_dims()]
            factor = prod(size.eval((), ()) for size in count if not size.used_dims())
            counts = [factor * prod(size.eval(sizes, ()) for size in opened) for sizes in at]
            if all(array.size and (array == n).all() for array, n in zip(values, counts, strict=False)):
                return factor, opened
    return None


def _computed(constant: ConstantOp, numbers: Linear, highest: Sequence[int], user: Operation) -> SSAValue:
    """The numbers as operations compute them, for what takes no constants or not those of different elements."""
    dtype = dense_array(constant.value).dtype
    total: SSAValue = _inserted(constant_of(numbers.constant.astype(dtype)), user)
    for k, (part, high) in enumerate(zip(numbers.coefficients, highest, strict=True)):
        if part.any():
            factor = _inserted(constant_of(part.astype(dtype)), user)
            plain = constant_of(np.array(high, dtype))
            size = _inserted(of_sizes(plain, AffineExpr.dimension(k), len(highest)), user)
            product = _inserted(MulOp(factor, size, result_types=None), user)
            total = _inserted(AddOp(total, product, result_types=None), user)
    return total


def _of_factors(
    operation: type[MulOp | DivOp],
    constant: ConstantOp,
    number: float,
    used: Sequence[AffineExpr],
    highest: Sequence[int],
    user: Operation,
) -> SSAValue:
    """A number times expressions over the sizes, or divided by them, as large as the constant."""
    array = dense_array(constant.value)
    total: SSAValue = _inserted(constant_of(np.full(array.shape, number, array.dtype)), user)
    for expression in used:
        plain = constant_of(np.array(expression.eval(highest, ()), array.dtype))
        size = _inserted(of_sizes(plain, expression, len(highest)), user)
        total = _inserted(operation(total, size, result_types=None), user)
    return total


def _inserted(op: Operation, user: Operation) -> SSAValue:
    block = user.parent
    assert block is not None
    op.location = user.location
    block.insert_op_before(op, user)
    return op.results[0]


def _cut(entry: FuncOp, found: Sequence[Comparison], sizes: Sequence[Size], samples: Sequence[Sample]) -> None:
    """Note on results that are computed whole, whatever the sizes, which part of them is meant."""
    for number in sorted({number for comparison in found for number in comparison.cut}):
        results = entry.body.block.last_op
        assert isinstance(results, ReturnOp)
        shape = static_shape(results.operands[number])
        shapes = [comparison.cut.get(number, shape) for comparison in found]
        top, values = np.array(shape, np.int64), [np.array(s, np.int64) for s in shapes]
        numbers = linear(top, values, [s.sizes for s in samples], [size.high for size in sizes])
        if numbers is None:
            raise differs(results, f"a size of output {number} is no linear function of the sizes")
        valid = tuple(
            (Factor(n, numbers.expression(axis) if any(c[axis] for c in numbers.coefficients) else None),)
            for axis, n in enumerate(shape)
        )
        given = list(entry.res_attrs or [DictionaryAttr({})] * len(results.operands))
        given[number] = DictionaryAttr({**given[number].data, VALID: valid_attribute(valid, sizes), WHOLE: UnitAttr()})
        entry.res_attrs = ArrayAttr(given)
