from dataclasses import dataclass

import pytest
from xdsl.dialects.arith import AddfOp, MulfOp, SubfOp
from xdsl.dialects.builtin import UNKNOWN_LOC, FusedLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from msc.driver.passes.registry import new_context
from msc.ir.locations import file_location, fused_location, source_location
from msc.ir.reading import parse_module
from msc.ir.rewriting import apply_patterns
from msc.support.diagnostics import Diagnostic, MscError

TEXT = "func.func @f(%x : f32) -> f32 {\n  %0 = arith.addf %x, %x : f32\n  func.return %0 : f32\n}"


@dataclass
class Swap(RewritePattern):
    old: type[AddfOp] | type[MulfOp] | type[SubfOp]
    new: type[AddfOp] | type[MulfOp] | type[SubfOp]

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, self.old):
            rewriter.replace(op, self.new(op.operands[0], op.operands[1]))


class Refuse(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        raise MscError(Diagnostic("MSC0404", "no"))


@pytest.fixture
def module() -> ModuleOp:
    return parse_module(new_context(), TEXT, "a.mir")


def test_new_operations_inherit_the_place(module: ModuleOp) -> None:
    assert apply_patterns(module, [Swap(AddfOp, MulfOp), Swap(MulfOp, SubfOp)], owner="t")
    places = [str(source_location(op)) for op in module.walk() if isinstance(op, SubfOp)]
    assert places == ["a.mir:2:8"]


def test_nothing_to_do(module: ModuleOp) -> None:
    assert not apply_patterns(module, [Swap(MulfOp, AddfOp)], owner="t")


def test_patterns_that_undo_each_other_are_stopped(module: ModuleOp) -> None:
    with pytest.raises(MscError) as error:
        apply_patterns(module, [Swap(AddfOp, MulfOp), Swap(MulfOp, AddfOp)], owner="ping-pong")
    found = error.value.diagnostics[0]
    assert found.code == "MSC0403"
    assert "ping-pong" in found.message


def test_diagnostics_pass_through_unchanged(module: ModuleOp) -> None:
    with pytest.raises(MscError, match="no") as error:
        apply_patterns(module, [Refuse()], owner="t")
    assert not hasattr(error.value, "__notes__")


def test_fused_locations() -> None:
    a, b = file_location("a", 1, 2), file_location("a", 3, 4)
    fused = fused_location([a, UNKNOWN_LOC, b, a])
    assert isinstance(fused, FusedLoc)
    assert fused_location([fused, a]) == fused
    assert fused_location([UNKNOWN_LOC]) == UNKNOWN_LOC
    assert fused_location([UNKNOWN_LOC, b]) == b
