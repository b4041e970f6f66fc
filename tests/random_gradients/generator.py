"""Random Cells with smooth functions, products and softmaxes in them: programs to differentiate.

Their values are no longer multiples of powers of two, so that rounding may decide a comparison: where it does, PyTorch
in f32 and in f64 take different ways, and the program says nothing (`compare`).
"""

from __future__ import annotations

from tests.random_cells.generator import Program

SMOOTH = ("tanh", "sigmoid", "sin", "cos", "softplus", "square", "erf")
"""Functions of one tensor whose values and derivatives stay small."""


class DifferentiableProgram(Program):
    """A random Cell whose tensors, `[2, 3]` of floats, pass through functions with derivatives of their own."""

    def _tensor(self, depth: int = 0) -> str:
        r = self._random
        if depth >= 2 or r.random() < 0.55:
            return super()._tensor(depth)
        x = super()._tensor(depth + 1)
        match r.randint(0, 7):
            case 0 | 1 | 2:
                return f"ops.{r.choice(SMOOTH)}({x} * 0.25)"
            case 3:
                return f"ops.softmax({x}, {r.choice(['-1', '0'])})"
            case 4:
                return f"({x} * ops.tanh({self._tensor(depth + 1)}))"
            case 5:
                return f"({x} / (1 + ops.abs({self._tensor(depth + 1)})))"
            case 6:
                square = f"ops.matmul({x}, ops.transpose(self.weight, (1, 0)))"
                return f"ops.matmul({square}, {self._tensor(depth + 1)} * 0.125)"
            case _:
                return f"({x} + {x}.{r.choice(['sum', 'max'])}() * 0.125)"
