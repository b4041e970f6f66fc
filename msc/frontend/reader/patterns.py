"""Reading `match`: patterns against values whose structure is known; what the graph computes decides as in `if`."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from msc.frontend.reader.branches import branch, settled
from msc.frontend.reader.expressions import aligned
from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.outcomes import Outcome
from msc.frontend.reader.statements import block
from msc.frontend.tensor import Tensor


@reads(ast.Match)
def _match_(frame: Frame, node: ast.Match) -> Outcome | None:
    return _try_cases(frame, node, frame.evaluate(node.subject), 0)


def _try_cases(frame: Frame, node: ast.Match, subject: Any, index: int) -> Outcome | None:
    """The first case from `index` on that fits."""
    if index == len(node.cases):
        return None
    case = node.cases[index]
    bound: dict[str, Any] = {}
    fits = _fits(frame, case.pattern, subject, bound)

    def taken() -> Outcome | None:
        return block(frame, case.body)

    def others() -> Outcome | None:
        return _try_cases(frame, node, subject, index + 1)

    if fits is False:
        return others()
    for name, value in bound.items():
        frame.store(name, value)
    if fits is True and case.guard is not None:
        fits = frame.session.truth(frame.evaluate(case.guard))
    elif case.guard is not None:
        fits = frame.session.decide(fits) and frame.session.truth(frame.evaluate(case.guard))
    if not isinstance(fits, Tensor):
        return taken() if fits else others()
    return settled(frame, branch(frame, node, fits, taken, others))


def _fits(frame: Frame, pattern: ast.pattern, subject: Any, bound: dict[str, Any]) -> bool | Tensor:
    """Whether a pattern fits; names that it binds are added to `bound`."""
    session = frame.session
    match pattern:
        case ast.MatchValue():
            return session.truth(session.operate(lambda a, b: a == b, *aligned(subject, frame.evaluate(pattern.value))))
        case ast.MatchSingleton():
            return subject is pattern.value
        case ast.MatchAs():
            fits = pattern.pattern is None or _fits(frame, pattern.pattern, subject, bound)
            if fits is not False and pattern.name is not None:
                bound[pattern.name] = subject
            return fits
        case ast.MatchOr():
            return _any_fits(frame, pattern.patterns, subject, bound)
        case ast.MatchSequence():
            return _sequence_fits(frame, pattern, subject, bound)
        case ast.MatchMapping():
            return _mapping_fits(frame, pattern, subject, bound)
        case ast.MatchClass():
            return _class_fits(frame, pattern, subject, bound)
        case _:
            raise SyntaxError("a starred pattern stands outside of a sequence")


def _any_fits(frame: Frame, patterns: Sequence[ast.pattern], subject: Any, bound: dict[str, Any]) -> bool:
    return any(frame.session.decide(_fits(frame, pattern, subject, bound)) for pattern in patterns)


def _all_fit(frame: Frame, patterns: Sequence[ast.pattern], subjects: Sequence[Any], bound: dict[str, Any]) -> bool:
    return all(frame.session.decide(_fits(frame, p, s, bound)) for p, s in zip(patterns, subjects, strict=True))


def _sequence_fits(frame: Frame, pattern: ast.MatchSequence, subject: Any, bound: dict[str, Any]) -> bool:
    if not isinstance(subject, Sequence) or isinstance(subject, str | bytes | bytearray):
        return False
    frame.session.look_into(subject)
    items: list[Any] = list(subject)
    starred = next((i for i, p in enumerate(pattern.patterns) if isinstance(p, ast.MatchStar)), None)
    if starred is None:
        return len(items) == len(pattern.patterns) and _all_fit(frame, pattern.patterns, items, bound)
    behind = len(pattern.patterns) - starred - 1
    if len(items) < len(pattern.patterns) - 1:
        return False
    stop = len(items) - behind
    patterns = [*pattern.patterns[:starred], *pattern.patterns[starred + 1 :]]
    fits = _all_fit(frame, patterns, [*items[:starred], *items[stop:]], bound)
    star = pattern.patterns[starred]
    if fits and isinstance(star, ast.MatchStar) and star.name is not None:
        bound[star.name] = frame.session.journal.born(items[starred:stop])
    return fits


def _mapping_fits(frame: Frame, pattern: ast.MatchMapping, subject: Any, bound: dict[str, Any]) -> bool:
    if not isinstance(subject, Mapping):
        return False
    frame.session.look_into(subject)
    keys = [frame.evaluate(key) for key in pattern.keys]
    if not all(key in subject for key in keys):
        return False
    fits = _all_fit(frame, pattern.patterns, [subject[key] for key in keys], bound)
    if fits and pattern.rest is not None:
        bound[pattern.rest] = frame.session.journal.born({k: v for k, v in subject.items() if k not in keys})
    return fits


_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def _class_fits(frame: Frame, pattern: ast.MatchClass, subject: Any, bound: dict[str, Any]) -> bool:
    session = frame.session
    kind = frame.evaluate(pattern.cls)
    if not session.is_instance(subject, kind):
        return False
    if pattern.patterns and kind in _SELF:
        return _all_fit(frame, pattern.patterns, [subject], bound)
    names = [*getattr(kind, "__match_args__", ())[: len(pattern.patterns)], *pattern.kwd_attrs]
    if len(names) < len(pattern.patterns) + len(pattern.kwd_attrs):
        raise TypeError(f"{kind.__name__}() accepts fewer positional sub-patterns than {len(pattern.patterns)}")
    if not all(hasattr(subject, name) for name in names):
        return False
    values = [session.attribute(frame, subject, name) for name in names]
    return _all_fit(frame, [*pattern.patterns, *pattern.kwd_patterns], values, bound)
