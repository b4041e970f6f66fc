"""The table of docs/evidence/onnx-conformance.md: how many cases of each class pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.pages import write_marked
from tests.conformance.expectations import short_reason
from tests.conformance.running import Outcome
from tests.conformance.suite import NOT_PLAIN

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "onnx-conformance.md"


def is_plain(outcome: Outcome) -> bool:
    """Whether a case is about tensors of numbers and booleans only, which the goal counts."""
    return not set(outcome.classes) & set(NOT_PLAIN)


_LABELS = {
    "real": "light models (nine networks, opset 9), their constant weights",
    "real-random": "light models, seeded random weights, against ONNX Runtime",
}


def groups(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The rows of the table; a case may be in several."""
    node = [o for o in outcomes if o.kind == "node"]
    plain = [o for o in node if is_plain(o)]
    rows = {
        "node, tensors of numbers and booleans": plain,
        "of these: one operator": [o for o in plain if "_expanded" not in o.name],
        "of these: the standard's function bodies (`_expanded`)": [o for o in plain if "_expanded" in o.name],
        "of these: float8, float4, int4, int2": [o for o in plain if {"float8", "sub-byte"} & set(o.classes)],
        "of these: with subgraphs": [o for o in plain if "subgraph" in o.classes],
        "of these: other domains than ai.onnx": [o for o in plain if any(c.startswith("domain") for c in o.classes)],
        "node, strings, sequences, optionals": [o for o in node if not is_plain(o)],
    }
    rows |= {
        _LABELS.get(kind, kind): [o for o in outcomes if o.kind == kind]
        for kind in sorted({o.kind for o in outcomes} - {"node"})
    }
    return {name: members for name, members in rows.items() if members}


def table(results: Mapping[str, Sequence[Outcome]]) -> str:
    """The table with a column for each executor, the specialised cases, and the reasons by number."""
    executors = list(results)
    by_executor = {e: groups(outcomes) for e, outcomes in results.items()}
    lines = [
        "| cases | count | " + " | ".join(f"pass ({e})" for e in executors) + " |",
        "|---|" + "---:|" * (1 + len(executors)),
    ]
    for name, members in by_executor[executors[0]].items():
        passed = [_passed(by_executor[e].get(name, [])) for e in executors]
        lines.append(f"| {name} | {len(members)} | " + " | ".join(passed) + " |")
    return "\n".join([*lines, "", *_specialised(results), "", *_reasons(results)])


def _passed(members: Sequence[Outcome]) -> str:
    count = sum(o.passed for o in members)
    return f"{count} ({100 * count / len(members):.1f} %)" if members else "not run"


def _specialised(results: Mapping[str, Sequence[Outcome]]) -> Iterable[str]:
    outcomes = next(iter(results.values()))
    bound = [o for o in outcomes if o.passed and o.bound]
    yield (
        f"{len(bound)} of the passing cases give as inputs what decides shapes (axes, sizes, counts): the model is "
        "specialised on the values of these inputs at its first call."
    )


def _reasons(results: Mapping[str, Sequence[Outcome]]) -> Iterable[str]:
    counts = {e: Counter(_kind_of(o.reason) for o in outcomes if not o.passed) for e, outcomes in results.items()}
    total = Counter[str]()
    for counted in counts.values():
        total += counted
    yield "Why cases do not pass:"
    yield ""
    yield "| " + " | ".join(counts) + " | reason |"
    yield "|" + "---:|" * len(counts) + "---|"
    for reason, _ in total.most_common():
        yield "| " + " | ".join(str(counted[reason]) for counted in counts.values()) + f" | {reason} |"


def _kind_of(reason: str) -> str:
    """A reason without the names of one model."""
    text = re.sub(r"(?<!\w)'[^']*'", "...", short_reason(reason))
    return re.sub(r"; did you mean.*", "", text)


def write_page(results: Mapping[str, Sequence[Outcome]]) -> None:
    """Put the table into the page, between its marks."""
    write_marked(PAGE, "conformance", table(results))
