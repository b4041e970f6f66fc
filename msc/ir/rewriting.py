"""Rewriting with patterns: new operations inherit the location of the matched one, and divergence is an error.

xDSL's walker gives new operations no location and has no limit: two patterns that undo each other loop for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, ModuleOp
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)

from msc.ir.locations import set_location, source_location
from msc.support.diagnostics import Diagnostic, MscError

_REWRITES_PER_OPERATION = 64
_REWRITES_AT_LEAST = 4096


@dataclass
class _Guarded(RewritePattern):
    """A pattern under watch: it remembers whose rewrite is going on, and counts rewrites."""

    pattern: RewritePattern
    owner: str
    budget: int
    matched_location: LocationAttr = UNKNOWN_LOC
    spent: int = 0

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        self.matched_location = op.location
        name, location = op.name, source_location(op)
        try:
            self.pattern.match_and_rewrite(op, rewriter)
        except MscError as error:
            raise _Escape(error) from error
        if not rewriter.has_done_action:
            return
        self.spent += 1
        if self.spent > self.budget:
            message = f"the patterns of '{self.owner}' do not converge: {self.spent} rewrites, the last on '{name}'"
            raise _Escape(MscError(Diagnostic("MSC0403", message, location)))

    def locate(self, op: Operation) -> None:
        """Insertion handler: an operation without a location gets that of the matched operation."""
        set_location(op, self.matched_location)


class _Escape(BaseException):
    """Carries a diagnostic past xDSL's walker, which would print the whole module into any Exception."""

    def __init__(self, error: MscError) -> None:
        super().__init__(error)
        self.error = error


def apply_patterns(root: ModuleOp | Region, patterns: Sequence[RewritePattern], *, owner: str) -> bool:
    """Rewrite everything in `root` with the patterns, tried in order, to a fixed point.

    Unused operations without effects are erased on the way. `owner` is the pass's name, for messages.
    Returns whether anything changed. Raises MSC0403 when the patterns do not converge, and passes on any MscError that
    a pattern raises.
    """
    region = root.body if isinstance(root, ModuleOp) else root
    applier = GreedyRewritePatternApplier(list(patterns), dce_enabled=True)
    guarded = _Guarded(applier, owner, _budget(region))
    listener = PatternRewriterListener(operation_insertion_handler=[guarded.locate])
    walker = PatternRewriteWalker(guarded, listener=listener)
    try:
        return walker.rewrite_region(region)
    except _Escape as escape:
        raise escape.error from None


def _budget(region: Region) -> int:
    size = sum(1 for _ in region.walk())
    return max(_REWRITES_AT_LEAST, _REWRITES_PER_OPERATION * size)
