"""MSC09xx: internal errors, which are bugs in msc."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0900",
        "internal error",
        "A bug in msc, not in the model. `--debug` shows the traceback; please report it with the model and "
        "the command.",
    ),
    Code(
        "MSC0901",
        "pass produced invalid IR",
        "The program was valid before the pass named and is not after it: a bug in that pass. `msc opt "
        "--print-ir-after PASS --verify-each=false` shows what it produced.",
    ),
    Code(
        "MSC0906",
        "operator without a meaning",
        "An operation of `ms` has a class and no NumPy function that says what it computes, so nothing can be compared "
        "with it. Whoever added the operator left out a step of docs/adding-an-operator.md.",
    ),
    Code(
        "MSC0905",
        "no C form",
        "The loop stage holds an operation or a type that the C generator has no text for. A verified loop-stage "
        "module has none: a bug in msc, unless the stage file was edited by hand.",
    ),
)
