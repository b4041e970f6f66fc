"""Layouts of images are those with the fewest predicted cycles, and keep the meaning."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.kernels import kernels_in
from msc.dialects.gk.attributes import GK_REASONS
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.layout.assign_layouts import AssignLayouts
from msc.graph_kernel.layout.layout_choice import LayoutChoice
from msc.ir.typed import static_shape
from msc.schedule import known_loops
from msc.support import forked
from tests.unit.graph_kernel.graphs import context, for_machine, function, random_inputs, results, run


def to_few(channels: int, size: int, march: str) -> ModuleOp:
    """A convolution of 64 channels to few, of an image that another convolution gives."""
    arguments = f"%x: tensor<1x64x{size}x{size}xf32>, %w: tensor<64x64x3x3xf32>, %v: tensor<{channels}x64x1x1xf32>"
    return for_machine(function(arguments, "%a = ms.conv2d %x, %w\n%y = ms.conv2d %a, %v"), march)


def stored(module: ModuleOp, **options: bool) -> list[tuple[int, ...]]:
    """The shapes in which the kernels of a module give images."""
    return [static_shape(k.results[0]) for k in kernels_in(run(module, ClusterKernels(), AssignLayouts(**options)))]


def reasons(module: ModuleOp, **options: bool) -> str:
    made = run(module, ClusterKernels(), AssignLayouts(**options))
    return " ".join(str(kernel.attributes.get(GK_REASONS)) for kernel in kernels_in(made))


def test_layouts_follow_the_width_of_vectors(tmp_path: Path) -> None:
    narrow = tmp_path / "narrow.toml"
    narrow.write_text('base = "x86-64-v4"\n[vectors]\nbits = 128\n', encoding="utf-8")
    assert (1, 30, 30, 2) in stored(to_few(2, 32, str(narrow)))
    assert (1, 2, 30, 30) in stored(to_few(2, 32, "x86-64-v4"))


def test_reasons_say_the_cycles_of_both_layouts() -> None:
    assert "cycles predicted with its readers" in reasons(to_few(2, 32, "x86-64-v4"))
    assert "cycles" not in reasons(to_few(2, 32, "x86-64-v4"), compare=False)


def across(march: str) -> ModuleOp:
    """A convolution of every other place of 16 channels to 3, which something other than kernels reads."""
    arguments = "%x: tensor<1x16x33x33xf32>, %w: tensor<16x16x1x1xf32>, %v: tensor<3x16x1x1xf32>"
    return for_machine(function(arguments, "%a = ms.conv2d %x, %w\n%y = ms.conv2d %a, %v {stride = [2, 2]}"), march)


def layouts(module: ModuleOp) -> list[str]:
    """How each kernel of a module reads and gives images, as its reasons say."""
    made = run(module, ClusterKernels(), AssignLayouts())
    return [str(kernel.attributes.get(GK_REASONS)) for kernel in kernels_in(made)]


def test_a_convolution_reads_rows_of_an_image_channels_last_where_that_is_faster(tmp_path: Path) -> None:
    """Lane by lane: that saves a transposition, unless loads of single lanes take long."""
    slow = tmp_path / "slow.toml"
    slow.write_text('base = "znver4"\n[ports]\nshuffle = 0.1\n', encoding="utf-8")
    assert any("gives images channels first: " in reason for reason in layouts(across("znver4")))
    assert not any("gives images channels first: " in reason for reason in layouts(across(str(slow))))


def test_layouts_do_not_depend_on_the_number_of_threads() -> None:
    one = to_few(2, 32, "x86-64-v4")
    two = for_machine(to_few(2, 32, "x86-64-v4"), "x86-64-v4", threads=2)
    assert stored(one) == stored(two)


def test_images_whose_channels_fill_vectors_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> float:
        raise AssertionError("compared")

    monkeypatch.setattr(LayoutChoice, "_cycles", never)
    body = "%a = ms.conv2d %x, %w\n%b = ms.conv2d %a, %w\n%p = ms.max_pool2d %b {kernel_size = [28, 28]}"
    arguments = "%x: tensor<1x32x32x32xf32>, %w: tensor<32x32x3x3xf32>"
    stored(for_machine(function(arguments, f"{body}\n%y = ms.reshape %p {{shape = [1, 32]}}"), "x86-64-v4"))


def test_loops_of_compared_kernels_are_not_decided_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, decided = Counter[str](), known_loops.decided_loops

    def counted(model: Any, *given: Any, **named: Any) -> object:
        found[model.structure] += 1
        return decided(model, *given, **named)

    monkeypatch.setattr(known_loops, "decided_loops", counted)
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    path = tmp_path / "model.mir"
    path.write_text(
        "func.func @main(%x: tensor<1x48x16x16xf32>) -> tensor<1x48x15x15xf32> {\n"
        "%0 = ms.max_pool2d %x {kernel_size = [2, 2]}\nfunc.return %0 : tensor<1x48x15x15xf32>\n}\n",
        encoding="utf-8",
    )
    compile_model(str(path), CompileOptions(march="x86-64-v4"), "gk")
    before = dict(found)
    compile_model(str(path), CompileOptions(march="x86-64-v4"), "loop")
    assert before
    assert found == Counter({structure: 2 * count for structure, count in before.items()})


@st.composite
def networks(draw: st.DrawFn) -> ModuleOp:
    """Up to three convolutions and poolings of few channels, some padded, some read twice."""
    channels, size, body = draw(st.integers(1, 9)), draw(st.integers(8, 12)), list[str]()
    arguments, value = [f"%x: tensor<1x{channels}x{size}x{size}xi32>"], "%x"
    for k in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            outputs = draw(st.integers(1, 9))
            arguments.append(f"%w{k}: tensor<{outputs}x{channels}x3x3xi32>")
            body.append(f'%a{k} = ms.conv2d {value}, %w{k} {{pad_mode = "{draw(st.sampled_from(["same", "valid"]))}"}}')
            channels = outputs
        else:
            body.append(f"%a{k} = ms.max_pool2d {value} {{kernel_size = [2, 2]}}")
        value = f"%a{k}"
        if draw(st.booleans()):
            body.append(f"%r{k} = ms.add {value}, {value}")
            value = f"%r{k}"
    return function(", ".join(arguments), "\n".join([*body, f"%y = ms.neg {value}"]))


@settings(deadline=None, max_examples=25)
@given(networks(), st.data())
def test_every_choice_keeps_the_meaning(module: ModuleOp, data: st.DataObject) -> None:
    inputs = random_inputs(module)
    clustered = run(for_machine(module, "x86-64-v4"), ClusterKernels())
    expected = results(module, inputs)

    def drawn(*_: object) -> float:
        return float(data.draw(st.integers(1, 3)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LayoutChoice, "_cycles", drawn)
        patch.setattr(forked, "_processors", lambda: 1)
        AssignLayouts().apply(context(), clustered)
    clustered.verify()
    np.testing.assert_array_equal(results(clustered, inputs), expected)
