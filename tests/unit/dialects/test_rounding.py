"""Which operations round is what their compute definitions say, and composite ones round unless they are listed."""

from __future__ import annotations

from collections.abc import Iterator

from msc.dialects.element_types import NARROW_FLOATS
from msc.dialects.ms.base import BasicOp, MsOp
from msc.dialects.ms.rounding import EXACT
from msc.poly.compute import Statement
from msc.poly.scalar import OPERATORS, Apply, Cast, Scalar
from tests.unit.compiled.operations import cases_of
from tests.unit.compiled.programs import parsed, program_text

KEEPING = {name for name, found in OPERATORS.items() if found.boolean} | set(
    "neg abs sign max min select floor ceil round trunc and or xor not".split()
)
"""Scalar operators whose result is one of their operands up to the sign, a whole number or a truth value."""


def scalars(body: Scalar) -> Iterator[Scalar]:
    yield body
    inner = body.args if isinstance(body, Apply) else (body.arg,) if isinstance(body, Cast) else ()
    for scalar in inner:
        yield from scalars(scalar)


def keeps(statement: Statement) -> bool:
    """Whether a statement writes nothing that must be rounded to f16."""
    if statement.combine in ("add", "mul"):
        return False
    floats = [s for s in scalars(statement.body) if s.dtype == "f16"]
    return all(not isinstance(s, Apply | Cast) or (isinstance(s, Apply) and s.op in KEEPING) for s in floats)


def operations() -> dict[str, MsOp]:
    """One operation of each kind that gives f16."""
    module = parsed(program_text(cases_of("f16")))
    ops = [op for op in module.walk() if isinstance(op, MsOp)]
    return {op.name: op for op in ops if any(op.result_dtype(i) == "f16" for i in range(len(op.results)))}


def test_operations_that_round_are_not_listed() -> None:
    basic = {name: op for name, op in operations().items() if isinstance(op, BasicOp) and op.is_basic}
    assert len(basic) > 50
    exact = {name for name, op in basic.items() if all(map(keeps, op.compute()))}
    assert exact - EXACT == set()
    assert {name for name in EXACT if name in basic} - exact <= {"ms.bit_cast"}


def test_narrow_floats_are_those_that_are_computed_in_f32() -> None:
    assert {"f16", "bf16"} == NARROW_FLOATS
