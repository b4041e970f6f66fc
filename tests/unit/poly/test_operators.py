"""Scalar operators are records: what each level makes of one, and of one that somebody adds."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.ir.affine import AffineMap

from msc.dialects import ms
from msc.poly.scalar import OPERATORS, Apply, Constant, Read, Scalar, register
from msc.schedule.vector_unit.formulas import BINARY, COMPARISONS, UNARY

ROOT = Path(__file__).parents[3]

NO_VECTORS = set("not and or xor shl shr sin cos tan asin acos atan sinh cosh asinh acosh atanh exp2".split()) | set(
    "floor ceil trunc sign rem mod pow atan2 isinf".split()
)
"""Operators that the vector unit of an Ascend core has neither as an instruction nor as a formula of its instructions,
but for some operands (powers with a constant exponent, truth values)."""
OF_TRUTH = set("eq ne lt le gt ge isnan isinf sign not and or xor shl shr select".split())
"""Operators that are lowered by comparisons and selections, or to operations on integers alone."""


def test_operators_added_from_outside_run_at_every_level(tmp_path: Path) -> None:
    """In the interpreter, in C, on the simulator, by ONNX Runtime; and they have gradients."""
    program = [sys.executable, str(Path(__file__).with_name("added_operators.py")), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert (done.stdout, done.returncode) == ("as NumPy says\n", 0), done.stderr


@pytest.mark.parametrize("name", OPERATORS)
def test_a_record_leaves_out_only_what_is_said_elsewhere(name: str) -> None:
    operator = OPERATORS[name]
    assert operator.mlir or operator.formula is not None or name in OF_TRUTH | {"mod"}
    instruction = name in UNARY or name in BINARY or name in COMPARISONS or name in ("neg", "round", "isnan", "select")
    vectors = instruction or operator.formula is not None or operator.single is not None
    assert vectors == (name not in NO_VECTORS)


def applied(scalar: Scalar) -> set[str]:
    """The operators of a scalar."""
    match scalar:
        case Apply():
            return {scalar.op}.union(*map(applied, scalar.args))
        case _:
            return set()


@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if operator.formula is not None])
def test_a_formula_does_not_need_itself(name: str) -> None:
    below, found = [name], set[str]()
    while below:
        operator = OPERATORS[below.pop()]
        if operator.formula is not None:
            arguments = [Read(k, AffineMap(0, 0, ()), "f32") for k in range(operator.arity)]
            below += applied(operator.formula(*arguments)) - found
            found |= applied(operator.formula(*arguments))
    assert name not in found


def test_a_name_has_one_record() -> None:
    taken = OPERATORS["exp"]
    with pytest.raises(ValueError, match="two scalar operators 'exp'"):
        register(type(taken)(name="exp"))
    with pytest.raises(ValueError, match="scalar operator 'exp' with 2 arguments"):
        Apply("exp", (Constant(1.0, "f32"), Constant(1.0, "f32")))


def test_operations_that_modules_name_exist() -> None:
    """Classes of `ms` that are made from records are attributes that no type checker knows."""
    wrong: list[str] = []
    for path in [*(ROOT / "msc").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text("utf-8")
        if "dialects import" not in text and "dialects.ms" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(value=ast.Name(id="ms"), attr=name) if name.endswith("Op"):
                    if not hasattr(ms, name):
                        wrong.append(f"{path}:{node.lineno} ms.{name}")
                case _:
                    pass
    assert not wrong
