"""Pass `lift-sizes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass

from msc.analysis.live_values import LiveValues
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.structure import ConstantOp
from msc.dialects.open_sizes import CONSTANT, module_sizes
from msc.graph_kernel.size_comparison import Comparison, Differing, Sample, differs
from msc.ir.entry import entries
from msc.ir.locations import source_location
from msc.poly.affine import simplified
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class LiftSizes(ModulePass):
    """Make constants that come from a call's sizes expressions over them, and make sure that all else is alike.

    Takes: basic operations with shapes of the largest sizes (`ms.sizes`), and `samples`: the same model at other sizes,
    as far through the compiler, given by the driver. Gives: the attribute `ms.size` on each constant whose value is
    another at other sizes, but linear in them. Raises MSC0208 for everything else in which the model at a sample is
    not the model here, restricted to what is live: other operations, other indices, other parameters.
    """

    name = "lift-sizes"
    samples: tuple[Sample, ...] = field(default=(), repr=False)

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
                Diagnostic("MSC0208", message, source_location(others[0]), help="give the sizes: --dim NAME=N")
            )
        live = LiveValues(op, entry)
        found = [Comparison(op, live, sample).check() for sample in self.samples]
        _lift(found, self.samples, [size.high for size in sizes])


def _lift(found: Sequence[Differing], samples: Sequence[Sample], highest: Sequence[int]) -> None:
    """Give each operand that is another number in some sample its expression, in a constant of its own."""
    for user, number in dict.fromkeys(place for differing in found for place in differing):
        constant = user.operands[number].owner
        assert isinstance(constant, ConstantOp)
        values = [_number(differing.get((user, number), constant)) for differing in found]
        expr = _through(_number(constant), values, samples, highest)
        if expr is None:
            raise differs(user, "it computes with a number that is no linear function of the sizes")
        own = constant.clone()
        own.attributes[CONSTANT] = AffineMapAttr(AffineMap(len(highest), 0, (simplified(expr),)))
        block = user.parent
        assert block is not None
        block.insert_op_before(own, user)
        user.operands[number] = own.result


def _number(constant: ConstantOp) -> int | None:
    """The value of a constant that is one integer everywhere."""
    value = splat_of(constant.result)
    number = None if value is None else float(str(value))
    return int(number) if number is not None and number.is_integer() else None


def _through(
    top: int | None, values: Sequence[int | None], samples: Sequence[Sample], highest: Sequence[int]
) -> AffineExpr | None:
    """The linear expression that has these values, if there is one with integer coefficients.

    Sample k differs from the largest sizes in size k alone, those after them in all.
    """
    if top is None or any(value is None for value in values):
        return None
    total: AffineExpr = AffineConstantExpr(top)
    for k, high in enumerate(highest):
        rise, run = top - (values[k] or 0), high - samples[k].sizes[k]
        if rise % run:
            return None
        total = total + (AffineExpr.dimension(k) + -high) * (rise // run)
    agrees = all(total.eval(s.sizes, ()) == value for s, value in zip(samples, values, strict=True))
    return total if agrees else None
