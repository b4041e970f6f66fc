"""`msc verify` names the first step that is wrong: faults are put into passes, a stage file and the C."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from msc.dialects import ms
from msc.driver.compile import Compilation, compile_model, generate_c, stage_text
from msc.driver.options import CompileOptions
from msc.driver.verification import differential
from msc.driver.verification.differential import Check, Settings, verify_model
from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from msc.lowering.cpu.vectorize.vectorize import Vectorize
from msc.runtime.program import CProgram
from msc.support.diagnostics import MscError

OPTIONS = CompileOptions(march="x86-64-v3")


def last_check(model: Path, settings: Settings | None = None, reference: str | None = None) -> Check:
    return verify_model(str(model), OPTIONS, settings or Settings(), reference)[-1]


def test_a_right_compilation_agrees_everywhere(model: Path) -> None:
    checks = verify_model(str(model), OPTIONS, Settings())
    assert not any(check.diverges for check in checks)
    assert {"opt", "gk", "loop", "c"} == {check.stage for check in checks}
    assert checks[-1].subject == "model"


def test_kernels_whose_buffers_have_fewer_dimensions_agree(tmp_path: Path) -> None:
    """A pointwise convolution runs along its image as along one dimension."""
    path = tmp_path / "pointwise.mir"
    path.write_text(
        """func.func @main(%x: tensor<1x5x6x7xf32>, %w: tensor<8x5x1x1xf32>) -> tensor<1x8x6x7xf32> {
          %0 = ms.conv2d %x, %w
          func.return %0 : tensor<1x8x6x7xf32>
        }""",
        encoding="utf-8",
    )
    assert not any(check.diverges for check in verify_model(str(path), OPTIONS, Settings()))


def test_a_faulty_graph_pass_is_named_with_the_operation(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(self: CanonicalizeMs, ctx: Context, op: ModuleOp) -> None:
        for gelu in [o for o in op.walk() if isinstance(o, ms.GeluOp)]:
            wrong = ms.ReluOp(gelu.operands[0])
            wrong.location = gelu.location
            block = gelu.parent_block()
            assert block is not None
            block.insert_op_before(wrong, gelu)
            gelu.results[0].replace_all_uses_with(wrong.results[0])
            block.erase_op(gelu)

    monkeypatch.setattr(CanonicalizeMs, "apply", faulty)
    check = last_check(model)
    assert check.diverges
    assert (check.stage, check.step) == ("opt", "canonicalize-ms")
    assert "ms.gelu at" in check.detail
    assert "small.mir:9:10" in check.detail


def test_a_faulty_loop_pass_is_named_with_the_kernel(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Vectorize.apply

    def faulty(self: Vectorize, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        add = next(o for o in op.walk() if isinstance(o, arith.AddfOp))
        add.operands[1] = add.operands[0]

    monkeypatch.setattr(Vectorize, "apply", faulty)
    check = last_check(model)
    assert (check.stage, check.step) == ("loop", "vectorize")
    assert check.subject.startswith("kernel k0_dense")
    assert "ms.matmul at" in check.detail


def test_wrong_c_is_named_with_the_kernel(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(compilation: Compilation) -> CProgram:
        program = generate_c(compilation)
        assert "0.5f" in program.source
        return replace(program, source=program.source.replace("0.5f", "0.25f"))

    monkeypatch.setattr(differential, "generate_c", faulty)
    check = last_check(model)
    assert check.stage == "c"
    assert "gelu" in check.subject


def test_a_changed_stage_file_differs_from_its_reference(model: Path) -> None:
    text = stage_text(compile_model(str(model), OPTIONS, "gk"))
    changed = model.parent / "changed.gk.mir"
    changed.write_text(text.replace("5.000000e-01", "2.500000e-01"), "utf-8")
    assert changed.read_text("utf-8") != text
    check = last_check(changed, reference=str(model))
    assert (check.stage, check.step) == ("gk", "read")
    assert "ms.gelu" in check.detail


def test_loops_above_the_limit_are_skipped_with_the_reason(model: Path) -> None:
    checks = verify_model(str(model), OPTIONS, Settings(loop_limit=1))
    skipped = [check for check in checks if check.verdict == "skipped"]
    assert skipped
    assert all("limit of 1" in check.detail for check in skipped)
    assert any(check.subject.startswith("kernel") for check in checks if check.stage == "c")


def test_given_inputs_are_checked(model: Path) -> None:
    with pytest.raises(MscError, match="MSC0603"):
        verify_model(str(model), OPTIONS, Settings({"x": np.zeros(3, np.float32)}))


def test_the_loop_stage_needs_a_reference(model: Path) -> None:
    path = model.parent / "small.loop.mir"
    path.write_text(stage_text(compile_model(str(model), OPTIONS)), "utf-8")
    with pytest.raises(MscError, match=r"MSC0006.*loop stage"):
        verify_model(str(path), OPTIONS, Settings())
    assert not last_check(path, reference=str(model)).diverges
