"""Results that overlap inputs: each distance that is allowed, against what the loops touch one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import cast

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, SSAValue

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_signature import KernelSignature, kernel_signatures
from msc.dialects.loop import ForOp, LoadOp, StoreOp
from msc.dialects.loop.accesses import AccessOp
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.ir.typed import memref_type
from msc.lowering.cpu.memory.compact_open_tensors import functions_of
from msc.lowering.cpu.memory.trailing import trailing_distances, turn_around

MODEL = """
module attributes {ms.weights = "w.safetensors"} {
  func.func @main(%x: tensor<1x4x9x6xi8>, %w: tensor<16x4x1x1xi8>, %d: tensor<16x1x3x3xi8>) -> tensor<1x16x5x3xi8> {
    %0 = ms.conv2d %x, %w : (tensor<1x4x9x6xi8>, tensor<16x4x1x1xi8>) -> tensor<1x16x9x6xi8>
    %1 = ms.conv2d %0, %d {group = 16, stride = [2, 2], pad_mode = "same"} : (tensor<1x16x9x6xi8>, tensor<16x1x3x3xi8>)
      -> tensor<1x16x5x3xi8>
    return %1 : tensor<1x16x5x3xi8>
  }
}
"""


def touched(block: Block, values: Mapping[SSAValue, int]) -> Iterator[tuple[AccessOp, range]]:
    """Each access with the elements of its buffer, in the order of the loops; those of an element at a time."""
    for op in block.ops:
        given = (
            [values[v] for v in (op.indices if isinstance(op, AccessOp) else op.operands)]
            if (isinstance(op, AccessOp | ForOp))
            else []
        )
        if isinstance(op, ForOp):
            low = max(op.lower.data.eval(given, []))
            high = min(op.upper.data.eval(given, []))
            for i in range(low, high, op.step.value.data):
                yield from touched(op.body.block, {**values, op.variable: i})
        elif isinstance(op, LoadOp | StoreOp):
            index = cast(AffineMapAttr, op.properties["index"]).data.eval(given, [])
            shape = memref_type(op.buffer).get_shape()
            strides = [prod(shape[k + 1 :]) for k in range(len(shape))]
            at = sum(i * s for i, s in zip(index, strides, strict=True))
            step = sum(i * s for i, s in zip(op.lane_steps, strides, strict=True))
            yield op, range(at, at + op.touched_lanes * step, step) if step else range(at, at + 1)


def spoils(function: func.FuncOp, written: SSAValue, read: SSAValue, distance: int) -> bool:
    """Whether a byte of an input that begins `distance` bytes behind the result is read after it is written."""
    sizes = {b: byte_size(b) // prod(memref_type(b).get_shape()) for b in (written, read)}
    lost: set[int] = set()
    for op, elements in touched(function.body.block, {}):
        size = sizes.get(op.buffer, 0)
        each = {k * size + byte for k in elements for byte in range(size)}
        if op.buffer is read and lost & {distance + byte for byte in each}:
            return True
        if op.buffer is written:
            lost |= each
    return False


def kernels(march: str, tmp_path: Path) -> list[tuple[func.FuncOp, KernelSignature]]:
    path = tmp_path / "net.mir"
    path.write_text(MODEL.replace(' attributes {ms.weights = "w.safetensors"}', ""), "utf-8")
    module = compile_model(str(path), CompileOptions(march=march), stop_after="loop").module
    return [(functions_of(module)[name], signature) for name, signature in kernel_signatures(module).items()]


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned around"])
@pytest.mark.parametrize("march", ["cortex-m4", "generic"])
def test_what_is_read_is_not_written_yet(march: str, turned: bool, tmp_path: Path) -> None:
    nearer = 0
    for function, signature in kernels(march, tmp_path):
        before = sorted((id(op.buffer), tuple(e)) for op, e in touched(function.body.block, {}))
        if turned:
            turn_around(function)
        assert sorted((id(op.buffer), tuple(e)) for op, e in touched(function.body.block, {})) == before
        for output in signature.output_range:
            for source in range(signature.inputs):
                distances = trailing_distances(function, output, source)
                assert distances is not None
                pair = function.args[output], function.args[source]
                for distance in {distances.least, distances.least + 3, distances.most, distances.most - 3}:
                    assert not spoils(function, *pair, distance)
                nearer += distances.least < byte_size(pair[0]) or distances.most > -byte_size(pair[1])
    assert nearer
