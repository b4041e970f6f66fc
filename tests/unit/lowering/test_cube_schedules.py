"""Every kernel of the cube has the tree that its code is written from; a person's is followed or refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import msc
from msc.codegen.davinci.simulate import check_kernel
from msc.dialects import davinci, gk
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.lowering.ascend.kernels import write_kernel
from msc.poly.schedule_tree.moves import mapped
from msc.poly.schedule_tree.nodes import Loop, Node, Tree, loops
from msc.poly.schedule_tree.text import from_lines, to_lines
from msc.schedule.schedule_kernels import check_given
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target

MATRICES = """
func.func @main(%a: tensor<72x80xf16>, %b: tensor<80x56xf16>, %v: tensor<1x80xf16>, %p: tensor<3x20x32xf16>,
                %q: tensor<3x32x24xf16>, %c: tensor<56xf16>, %r: tensor<72x1xf16>, %s: tensor<1x56xf16>)
    -> (tensor<72x56xf16>, tensor<1x56xf16>, tensor<3x20x24xf16>, tensor<72x56xf16>) {
  %0 = ms.matmul %a, %b : (tensor<72x80xf16>, tensor<80x56xf16>) -> tensor<72x56xf16>
  %1 = ms.add %0, %c : (tensor<72x56xf16>, tensor<56xf16>) -> tensor<72x56xf16>
  %2 = ms.gelu %1 : (tensor<72x56xf16>) -> tensor<72x56xf16>
  %3 = ms.matmul %v, %b : (tensor<1x80xf16>, tensor<80x56xf16>) -> tensor<1x56xf16>
  %4 = ms.batch_matmul %p, %q : (tensor<3x20x32xf16>, tensor<3x32x24xf16>) -> tensor<3x20x24xf16>
  %5 = ms.matmul %r, %s : (tensor<72x1xf16>, tensor<1x56xf16>) -> tensor<72x56xf16>
  func.return %2, %3, %4, %5 : tensor<72x56xf16>, tensor<1x56xf16>, tensor<3x20x24xf16>, tensor<72x56xf16>
}
"""
TURNED = """
builtin.module attributes {ms.target = #ms.target<"ascend910b1", machine = "ascend910b1", threads = 1>} {
func.func @main(%x: tensor<272x80xf16>, %y: tensor<80x156xf16>) -> tensor<156x272xf16> {
  %s = gk.kernel "turned" (%a = %x : tensor<272x80xf16>, %b = %y : tensor<80x156xf16>) -> tensor<156x272xf16> {
    %0 = ms.matmul %a, %b : (tensor<272x80xf16>, tensor<80x156xf16>) -> tensor<272x156xf16>
    %1 = ms.transpose %0 {perm = [1, 0]} : (tensor<272x156xf16>) -> tensor<156x272xf16>
    gk.yield %1 : tensor<156x272xf16>
  }
  func.return %s : tensor<156x272xf16>
}
}
"""
IMAGES = """
func.func @main(%x: tensor<2x20x13x11xTYPE>, %u: tensor<40x20x3x3xTYPE>, %v: tensor<20x40x3x3xTYPE>,
                %w: tensor<24x10x3x1xTYPE>, %b: tensor<24xTYPE>) -> (tensor<2x20x7x6xTYPE>, tensor<2x24x5x6xTYPE>) {
  %0 = ms.conv2d %x, %u {pad_mode = "same", stride = [2, 2]}
    : (tensor<2x20x13x11xTYPE>, tensor<40x20x3x3xTYPE>) -> tensor<2x40x7x6xTYPE>
  %1 = ms.relu %0 : (tensor<2x40x7x6xTYPE>) -> tensor<2x40x7x6xTYPE>
  %2 = ms.conv2d %1, %v {pad_mode = "pad", pad = [2, 2, 2, 2], dilation = [2, 2]}
    : (tensor<2x40x7x6xTYPE>, tensor<20x40x3x3xTYPE>) -> tensor<2x20x7x6xTYPE>
  %3 = ms.sigmoid %2 : (tensor<2x20x7x6xTYPE>) -> tensor<2x20x7x6xTYPE>
  %4 = ms.conv2d %2, %w, %b {group = 2}
    : (tensor<2x20x7x6xTYPE>, tensor<24x10x3x1xTYPE>, tensor<24xTYPE>) -> tensor<2x24x5x6xTYPE>
  func.return %3, %4 : tensor<2x20x7x6xTYPE>, tensor<2x24x5x6xTYPE>
}
"""
SUITE = {
    "matrices": (MATRICES, "model.mir", "ascend910b1"),
    "operands that change places": (TURNED, "model.gk.mir", "ascend910b1"),
    "images": (IMAGES.replace("TYPE", "f16"), "model.mir", "ascend910b1"),
    "images of f32": (IMAGES.replace("TYPE", "f32"), "model.mir", "ascend910b1"),
    "coupled cores": (IMAGES.replace("TYPE", "f16"), "model.mir", "ascend910a"),
}


def cube_kernels(name: str, folder: Path) -> tuple[ModuleOp, list[tuple[gk.KernelOp, str]]]:
    """A suite, and its kernels that the cube runs, each with its code, which is written from the tree noted on it."""
    text, file, target = SUITE[name]
    path = folder / file
    path.write_text(text, encoding="utf-8")
    module = compile_model(str(path), CompileOptions(target=target), stop_after="gk").module
    kernels = [op for op in module.walk() if isinstance(op, gk.KernelOp)]
    written = [(kernel, str(write_kernel(kernel, davinci_target(target), "one"))) for kernel in kernels]
    return module, [(kernel, code) for kernel, code in written if "davinci.mad" in code]


def tree_of(kernel: gk.KernelOp) -> Tree:
    schedule = kernel.attributes[GK_SCHEDULE]
    assert isinstance(schedule, gk.ScheduleAttr)
    return schedule.data


@pytest.mark.parametrize("name", SUITE)
def test_every_kernel_of_the_cube_has_a_tree_that_gives_its_code(name: str, tmp_path: Path) -> None:
    _, kernels = cube_kernels(name, tmp_path)
    assert len(kernels) == {"operands that change places": 1, "matrices": 4}.get(name, 3)
    for kernel, code in kernels:
        kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr.of_lines(to_lines(tree_of(kernel)))
        check_given(kernel)
        assert str(write_kernel(kernel, davinci_target(SUITE[name][2]), "one")) == code


@pytest.mark.parametrize("counts", [(1, 23, 25), (32, 49, 70)])
def test_cores_share_any_number_of_images(counts: tuple[int, ...], tmp_path: Path) -> None:
    """Also where images are no multiple of cores: those that would have none are not in the tree."""
    images = ", ".join(f"%x{n}: tensor<{n}x3x12x12xf16>" for n in counts)
    lines = [f'  %y{n} = ms.conv2d %x{n}, %w {{pad_mode = "same"}}\n' for n in counts]
    types = ", ".join(f"tensor<{n}x40x12x12xf16>" for n in counts)
    results = ", ".join(f"%y{n}" for n in counts)
    head = f"func.func @main({images}, %w: tensor<40x3x3x3xf16>) -> ({types}) {{\n"
    path = tmp_path / "model.mir"
    path.write_text(head + "".join(lines) + f"  func.return {results} : {types}\n}}\n", encoding="utf-8")
    module = compile_model(str(path), CompileOptions(target="ascend910b1"), stop_after="davinci").module
    assert sum("davinci.mad" in str(op) for op in module.walk() if isinstance(op, davinci.DavinciKernelOp)) == 3


def changed(tree: Tree) -> Iterator[Tree]:
    """The tree with one loop otherwise: smaller tiles, another mark, other buffers, in the place of the one inside."""
    for loop in loops(tree):
        smaller = (loop.tile or 0) // 2 // 16 * 16
        others: list[Node] = [replace(loop, tile=smaller)] if smaller else []
        others += (
            [replace(loop, mark="", buffers=1, cores=0, unit="")] if loop.mark else [replace(loop, mark="parallel")]
        )
        others += [replace(loop, cores=1 if loop.cores > 1 else 2)] if loop.mark == "parallel" else []
        others += [replace(loop, mark="pipeline", buffers=3)] if loop.mark == "pipeline" else []
        inside = loop.body.nodes[0] if len(loop.body.nodes) == 1 and not loop.body.clauses else None
        if isinstance(inside, Loop):
            others.append(replace(inside, body=replace(loop.body, nodes=(replace(loop, body=inside.body),))))
        for other in others:
            yield mapped(tree, lambda node, old=loop, new=other: new if node is old else node)


def followed(kernel: gk.KernelOp, code: str, target: str) -> Iterator[davinci.DavinciKernelOp | None]:
    """The code of changed schedules, which the kernel carries meanwhile; None for one that is refused."""
    for tree in changed(tree_of(kernel)):
        kernel.attributes[GK_SCHEDULE] = schedule = gk.ScheduleAttr(from_lines(to_lines(tree)))
        try:
            check_given(kernel)
            made = write_kernel(kernel, davinci_target(target), "one")
        except MscError as problem:
            if [each.code for each in problem.diagnostics] != ["MSC0408"]:
                raise
            yield None
            continue
        assert "davinci.mad" in str(made)
        assert kernel.attributes[GK_SCHEDULE] == schedule
        if str(made) != code:
            yield made
    del kernel.attributes[GK_SCHEDULE]


@pytest.mark.parametrize("name", SUITE)
def test_a_changed_schedule_is_followed_or_refused(name: str, tmp_path: Path) -> None:
    _, kernels = cube_kernels(name, tmp_path)
    for kernel, code in kernels:
        made = list(followed(kernel, code, SUITE[name][2]))
        assert any(each is None for each in made)
        assert any(each is not None for each in made)
        for each in made[:6]:
            if each is not None:
                check_kernel(each)


@pytest.mark.parametrize("name", ["matrices", "operands that change places", "images"])
def test_what_a_changed_schedule_computes(name: str, tmp_path: Path) -> None:
    module, kernels = cube_kernels(name, tmp_path)
    path, target = tmp_path / "changed.gk.mir", SUITE[name][2]
    path.write_text(str(module), encoding="utf-8")
    plain = msc.compile(str(path), target=target)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(p.shape).astype(np.float16) for p in plain.signature.inputs]
    for kernel, code in kernels:
        changes = followed(kernel, code, target)
        next(each for each in changes if each is not None)
    path.write_text(str(module), encoding="utf-8")
    for found, expected in zip(
        msc.compile(str(path), target=target).results(*inputs), plain.results(*inputs), strict=True
    ):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=4e-3, atol=2e-2)


ON_THE_CPU = """
builtin.module {
func.func @main(%x: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %y = gk.kernel "exp" (%a = %x : tensor<64x96xf32>) -> tensor<64x96xf32> attributes {gk.schedule = #gk.schedule<[
    "axis i0_i1 6144: S0.0", "for i0_i1 tile 1536 parallel 2, i0_i1", "  run S0"]>} {
    %0 = ms.exp %a : (tensor<64x96xf32>) -> tensor<64x96xf32>
    gk.yield %0 : tensor<64x96xf32>
  }
  func.return %y : tensor<64x96xf32>
}
}
"""


@pytest.mark.parametrize(("target", "cores", "why"), [("cpu", 2, "no schedule"), ("ascend910b1", 99, "48 cores")])
def test_a_number_of_cores_is_one_that_the_machine_has(target: str, cores: int, why: str, tmp_path: Path) -> None:
    path = tmp_path / "exp.gk.mir"
    text = ON_THE_CPU.replace("parallel 2", f"parallel {cores}")
    if target != "cpu":
        machine = f'attributes {{ms.target = #ms.target<"{target}", machine = "{target}", threads = 1>}}'
        text = text.replace("builtin.module", f"builtin.module {machine}")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MscError, match=rf"MSC0408(.|\n)*{why}"):
        compile_model(str(path), CompileOptions(target=target))
