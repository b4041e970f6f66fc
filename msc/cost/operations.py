"""The number of vector instructions of a statement's arithmetic."""

from __future__ import annotations

from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Read, Scalar
from msc.targets.machine import Machine


def operations(scalar: Scalar, target: Machine) -> tuple[float, float]:
    """Vector instructions of one vector: products, and all others."""
    match scalar:
        case Apply():
            below = [operations(arg, target) for arg in scalar.args]
            products, others = (sum(each) for each in zip(*below, strict=True))
            own = _own(scalar, target)
            return products + own[0], others + own[1]
        case Cast():
            products, others = operations(scalar.arg, target)
            return products, others + 1.0
        case Constant() | Read():
            return 0.0, 0.0
        case _:
            return 0.0, 1.0


def _own(scalar: Apply, target: Machine) -> tuple[float, float]:
    """Instructions of the operator itself; a multiply-add is one instruction."""
    operator = OPERATORS[scalar.op]
    if operator.cost:
        return operator.times * getattr(target.operators, operator.cost), 0.0
    if scalar.op == "mul":
        return 1.0, 0.0
    fused = target.fma and scalar.op in ("add", "sub") and any(map(is_product, scalar.args))
    return 0.0, 0.0 if fused else 1.0


def is_product(scalar: Scalar) -> bool:
    """Whether it is a product."""
    return isinstance(scalar, Apply) and scalar.op == "mul"
