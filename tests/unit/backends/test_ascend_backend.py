"""Models on simulated Ascend machines compute what the interpreter does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.arrays import Array, numpy_dtype
from msc.dialects.davinci import KernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.driver.compile import compile_model, generate
from msc.driver.options import CompileOptions
from msc.driver.verification.differential import Settings, verify_model
from msc.interp import evaluate

ROOT = Path(__file__).parents[3]
OPERATORS = ROOT / "tests" / "unit" / "backends" / "ascend_operators.mir"
NAMES = (
    *("add", "rows", "columns", "gelu", "tanh", "softmax", "mean", "max", "sum", "less", "select", "integers"),
    *("bytes", "bf16", "relu", "f16 sum", "transpose", "argmax", "cast", "and"),
)
ON_THE_SCALAR_UNIT = {"transpose", "argmax"}


@dataclass(frozen=True)
class Compared:
    """The simulated results of all operators, the interpreter's, and the module that was compiled."""

    found: Sequence[Array]
    expected: Sequence[Array]
    module: ModuleOp


@pytest.fixture(scope="module")
def compared() -> Compared:
    options = CompileOptions(target="ascend910b1")
    compilation = compile_model(str(OPERATORS), options)
    program = generate(compilation)
    rng = np.random.default_rng(0)
    inputs = dict[str, Array]()
    for tensor in program.signature.inputs:
        numbers = rng.standard_normal(tensor.shape) * 3
        inputs[tensor.name] = numbers > 0 if tensor.dtype == "i1" else numbers.astype(numpy_dtype(tensor.dtype))
    found = options.backend.load(program, compilation.parameters()).results(**inputs)
    graph = compile_model(str(OPERATORS), CompileOptions(), "graph")
    return Compared(found, evaluate(graph.module, list(inputs.values()), {}), compilation.module)


@pytest.mark.parametrize("name", NAMES)
def test_operators(name: str, compared: Compared) -> None:
    found, expected = (side[NAMES.index(name)] for side in (compared.found, compared.expected))
    bound = 1e-2 if expected.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=bound, atol=bound)


def test_the_vector_unit_takes_what_it_can(compared: Compared) -> None:
    kernels = [op for op in compared.module.body.block.ops if isinstance(op, KernelOp)]
    slow = {NAMES[k] for k, op in enumerate(kernels) if scalar_cycles(op) is not None}
    assert slow == ON_THE_SCALAR_UNIT


def test_every_step_of_a_model_agrees_with_the_interpreter() -> None:
    path = str(ROOT / "samples" / "lenet5" / "lenet5.mir")
    checks = verify_model(path, CompileOptions(target="ascend910b1"), Settings())
    assert not any(check.diverges for check in checks)
    assert checks[-1].stage == "c"
