"""`.tflite` files: what is read, and what is wrong with a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import msc
from benchmarks.tflite_graph import Array, Codes, TfliteGraph
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.importers.tflite import import_bytes, import_model
from msc.interp import evaluate
from msc.support.diagnostics import MscError
from tests.unit.importers.models import HOSTILE_NAMES

CONV = ("Conv2DOptions", {"Padding": 0, "StrideH": 1, "StrideW": 1})
SUM = ("AddOptions", {"FusedActivationFunction": 0})


def small(*, scales: bool = True) -> tuple[TfliteGraph, int]:
    """Two convolutions and a sum of bytes, with some scales or with none."""
    graph = TfliteGraph()
    kind: Codes | str = Codes(0.1, 3) if scales else "int8"
    x = graph.input("image", (1, 5, 5, 2), kind)
    weight = graph.constant(np.ones((2, 3, 3, 2), np.int8), Codes((0.01, 0.02), 0) if scales else None)
    y = graph.op("CONV_2D", [x, weight], (1, 5, 5, 2), kind, CONV)
    y = graph.op("CONV_2D", [y, weight], (1, 5, 5, 2), kind, CONV)
    return graph, graph.op("ADD", [y, x], (1, 5, 5, 2), kind, SUM)


def codes_of(data: bytes) -> str:
    with pytest.raises(MscError) as raised:
        import_bytes(data)
    return raised.value.diagnostics[0].code


def test_an_image_keeps_its_shape_and_is_transposed_at_the_ends_alone() -> None:
    graph, y = small()
    module = import_bytes(graph.bytes([y])).module
    assert [op.name for op in module.walk()].count("ms.transpose") == 2


def test_a_file_is_compiled_by_its_path(tmp_path: Path) -> None:
    graph, y = small()
    (tmp_path / "m.tflite").write_bytes(graph.bytes([y]))
    model = msc.compile(tmp_path / "m.tflite")
    assert model(np.zeros((1, 5, 5, 2), np.int8)).shape == (1, 5, 5, 2)
    assert model.signature.inputs[0].reals == (float(np.float32(0.1)), 3)
    assert model.signature.outputs[0].reals == (float(np.float32(0.1)), 3)


def test_operators_that_msc_lacks_are_listed() -> None:
    graph = TfliteGraph()
    x = graph.input("x", (4,))
    (y,) = graph.ops("CUSTOM", [x], [((4,), "float32")], custom="Whirl")
    (z,) = graph.ops("WHERE", [y], [((4, 1), "int64")])
    with pytest.raises(MscError) as raised:
        import_bytes(graph.bytes([z]))
    text = str(raised.value)
    assert raised.value.diagnostics[0].code == "MSC0710"
    assert "Whirl" in text
    assert "operator 1" in text


def without_codes() -> bytes:
    graph, y = small(scales=False)
    return graph.bytes([y])


def wrong_shape() -> bytes:
    graph = TfliteGraph()
    x = graph.input("x", (4,))
    return graph.bytes([graph.op("RELU", [x], (5,))])


def absurd() -> bytes:
    graph = TfliteGraph()
    return graph.bytes([graph.op("RELU", [graph.input("x", (1 << 30, 1 << 30))], (1,))])


def cycle() -> bytes:
    graph = TfliteGraph()
    x = graph.input("x", (4,))
    y = graph.op("ADD", [x, 2], (4,), options=SUM)
    return graph.bytes([graph.op("RELU", [y], (4,))])


def no_tensor() -> bytes:
    graph = TfliteGraph()
    graph.input("x", (4,))
    return graph.bytes([graph.op("RELU", [77], (4,))])


def short_constant() -> bytes:
    graph = TfliteGraph()
    x = graph.input("x", (4,))
    c = graph.constant(np.zeros(4, np.float32))
    graph.buffers[-1] = b"\0" * 12
    return graph.bytes([graph.op("ADD", [x, c], (4,), options=SUM)])


def unknown_shape() -> bytes:
    graph = TfliteGraph()
    shape = graph.input("shape", (1,), "int32")
    return graph.bytes(
        [graph.op("RESHAPE", [graph.input("x", (4,)), shape], (4,)), graph.op("FILL", [shape, shape], (1,))]
    )


def far_scales() -> bytes:
    graph = TfliteGraph()
    x = graph.input("x", (4,), Codes(1e30))
    return graph.bytes([graph.op("QUANTIZE", [x], (4,), Codes(1e-8))])


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (without_codes, "MSC0730"),
        (wrong_shape, "MSC0711"),
        (absurd, "MSC0708"),
        (cycle, "MSC0705"),
        (no_tensor, "MSC0705"),
        (short_constant, "MSC0709"),
        (unknown_shape, "MSC0712"),
        (far_scales, "MSC0730"),
        (lambda: b"", "MSC0702"),
        (lambda: b"\x1c\0\0\0TFL3", "MSC0702"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_is_wrong_with_a_file_is_said(made: Callable[[], bytes], code: str) -> None:
    assert codes_of(made()) == code


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MscError, match="cannot read"):
        import_model(tmp_path / "none.tflite")


def test_damaged_files_raise_errors_of_msc() -> None:
    """Bytes are changed and ends are cut: each file is read, or refused with a code."""
    graph, y = small()
    data = graph.bytes([y])
    rng = np.random.default_rng(0)
    for _ in range(150):
        changed = bytearray(data[: rng.integers(8, len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.integers(1, 4)):
            changed[rng.integers(len(changed))] = rng.integers(256)
        try:
            import_bytes(bytes(changed))
        except MscError as error:
            assert error.diagnostics[0].code.startswith("MSC0")  # noqa: PT017


def dense(x: Codes | str, weight: Codes | None, out: Codes | str, data: Array) -> bytes:
    """A dense layer of eight inputs; the weight's integers lie `data.dtype`'s way."""
    graph = TfliteGraph()
    given = graph.input("x", (2, 8), x)
    options = ("FullyConnectedOptions", {"FusedActivationFunction": 1})
    return graph.bytes([graph.op("FULLY_CONNECTED", [given, graph.constant(data, weight)], (2, 5), out, options)])


def result(data: bytes, x: Array) -> Array:
    imported = import_bytes(data)
    (found,) = evaluate(imported.module, {"x": x}, imported.weights)
    return found


WEIGHT = np.random.default_rng(0).integers(-7, 8, (5, 8)).astype(np.int8)
GIVEN = np.random.default_rng(1).integers(-128, 128, (2, 8)).astype(np.int8)


def test_unsigned_bytes_are_signed_ones_moved() -> None:
    signed = dense(Codes(0.1, 3), Codes(0.02), Codes(0.05, -20), WEIGHT)
    kinds = Codes(0.1, 131, "uint8"), Codes(0.02, 128, "uint8"), Codes(0.05, 108, "uint8")
    unsigned = dense(*kinds, (WEIGHT.astype(np.int16) + 128).astype(np.uint8))
    moved = (GIVEN.astype(np.int16) + 128).astype(np.uint8)
    found = result(unsigned, moved)
    np.testing.assert_array_equal(found.astype(np.int16) - 128, result(signed, GIVEN))
    assert len(np.unique(found)) > 2


def test_weights_of_four_bits_are_unpacked() -> None:
    packed = dense(Codes(0.1, 3), Codes(0.02, 0, "int4"), Codes(0.05, -20), WEIGHT)
    wanted = dense(Codes(0.1, 3), Codes(0.02), Codes(0.05, -20), WEIGHT)
    np.testing.assert_array_equal(result(packed, GIVEN), result(wanted, GIVEN))


def test_weights_alone_stand_for_reals() -> None:
    x = GIVEN.astype(np.float32)
    found = result(dense("float32", Codes((0.1, 0.2, 0.3, 0.4, 0.5)), "float32", WEIGHT), x)
    scales = np.array([[0.1], [0.2], [0.3], [0.4], [0.5]], np.float32)
    np.testing.assert_allclose(found, np.maximum(x @ (WEIGHT * scales).T, 0), rtol=1e-5)


def test_names_are_escaped(tmp_path: Path) -> None:
    """Names of tensors do not reach the C but as comments and strings."""
    graph, values = TfliteGraph(), list[int]()
    for k, name in enumerate(HOSTILE_NAMES):
        x = graph.input(name, (300,))
        weight = graph.constant(np.full(300, k, np.float32), name=name)
        values.append(graph.op("ADD", [x, weight], (300,), options=SUM))
    (tmp_path / "m.tflite").write_bytes(graph.bytes(values))
    program = generate_c(compile_model(str(tmp_path / "m.tflite"), CompileOptions()))
    code = re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', "", program.source + program.header, flags=re.DOTALL)
    assert not any(word in code for word in ("int evil", "<evil>", "touch pwned", "-rf", "\u202e", "../up", "??/"))
