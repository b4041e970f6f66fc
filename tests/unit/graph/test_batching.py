"""Every operation of the ms dialect on batches: what it gives for each example by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp

from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.batching import Batching
from msc.interp import evaluate
from msc.ir.typed import tensor_type
from tests.unit.compiled.programs import Case, parsed, program_text
from tests.unit.dialects.conftest import CASES
from tests.unit.graph.autodiff.differences import inputs_of

SIZE = 3


def batched(module: ModuleOp, places: tuple[int, ...]) -> ModuleOp:
    """The program with batches of SIZE at some inputs; it gives batches."""
    module = module.clone()
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    block = function.body.block
    ops, returned = list(block.ops)[:-1], block.last_op
    assert isinstance(returned, ReturnOp)
    batching = Batching(GradientEmitter(returned, lambda op: block.insert_op_before(op, returned)), SIZE)
    for place in places:
        type_ = tensor_type(block.args[place])
        batching.values[block.args[place]] = block.insert_arg(
            TensorType(type_.element_type, (SIZE, *type_.get_shape())), len(block.args)
        )
    batching.run(ops)
    batching.close()
    returned.operands = [batching.values.get(v, v) for v in returned.operands]
    function.update_function_type()
    return module


def examples(case: Case, rng: np.random.Generator) -> list[NDArray[Any]]:
    narrow = [type_.rsplit("x", 1)[-1] for type_ in case[1].split()]
    found = inputs_of(case, rng)
    kinds = {"f16": np.float16, "f32": np.float32}
    return [a.astype(kinds.get(name, a.dtype)) for a, name in zip(found, narrow, strict=True)]


WITH_OPERANDS = [case for case in CASES if case[1]]


@pytest.mark.parametrize("case", WITH_OPERANDS, ids=[" | ".join(case) for case in WITH_OPERANDS])
def test_a_batch_gives_what_its_examples_give(case: Case) -> None:
    operation, types = case
    wide = (operation, types.replace("bf16", "f32"))
    module = parsed(program_text([wide]))
    rng = np.random.default_rng(1)
    count = len(types.split())
    given = [examples(wide, rng) for _ in range(SIZE)]
    for places in {tuple(range(count)), (0,), (count - 1,)}:
        single = [[given[n][k] if k in places else given[0][k] for k in range(count)] for n in range(SIZE)]
        expected = [np.stack(column) for column in zip(*(evaluate(module, g, {}) for g in single), strict=True)]
        batches = [np.stack([given[n][k] for n in range(SIZE)]) for k in places]
        found = evaluate(batched(module, places), [*given[0], *batches], {})
        for value, wanted in zip(found, expected, strict=True):
            assert value.dtype == wanted.dtype
            value = value if value.ndim == wanted.ndim else np.broadcast_to(value, wanted.shape)
            np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=1e-5)
