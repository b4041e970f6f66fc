"""MSC04xx: passes and pipelines."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0400",
        "pipeline cannot be parsed",
        "A pipeline is a list such as `pass-a,pass-b{option=1 other=2,3}`. The caret marks where it stops being one.",
    ),
    Code(
        "MSC0401",
        "unknown pass",
        "No pass has this name. `msc opt --show-passes` lists them; the help line gives the nearest name.",
    ),
    Code(
        "MSC0402",
        "bad pass option",
        "The pass has no option of this name, or the option does not take this value. The note lists the"
        " options of the pass.",
    ),
    Code(
        "MSC0403",
        "patterns do not converge",
        "A set of rewrite patterns still changed the program after its limit of rounds: two patterns undo "
        "each other. This is a bug in the pass that is named.",
    ),
    Code(
        "MSC0404",
        "pass failed",
        "The pass cannot be applied to this program; its message says why.",
    ),
    Code(
        "MSC0408",
        "illegal schedule",
        "A kernel carries a schedule that somebody wrote (attribute gk.schedule). Its text is not a schedule, a clause"
        " does not fit the kernel or the machine, or isl finds that it violates a dependence. docs/schedules.md has the"
        " grammar and says what clauses mean. Remove the attribute, and msc chooses a schedule.",
    ),
    Code(
        "MSC0409",
        "stale tuning entry",
        "A file that `msc tune` wrote has a schedule for a kernel that the model does not have (any more): the model,"
        " its sizes or msc's fusion changed. Tune again, or delete the entry.",
    ),
    Code(
        "MSC0410",
        "foreign tuning entry",
        "A file that `msc tune` wrote has schedules that were measured for another target, another number of threads or"
        " by another version of msc. What was best there says nothing here: tune again.",
    ),
    Code(
        "MSC0411",
        "not a tuning file",
        "The file that `--tuned` names is not what `msc tune` writes; the message says what is wrong in it.",
    ),
    Code(
        "MSC0412",
        "recursion",
        "Functions are inlined into the entry functions, so none may call itself, directly or through others. Repeat"
        " with `scf.for` or `scf.while`; a recursion whose depth is known when the model is built can be written out.",
    ),
    Code(
        "MSC0413",
        "too large when inlined",
        "Each call stands for a copy of the function's operations; where functions call each other several times the"
        " copies multiply. Put what repeats into an `scf.for`.",
    ),
    Code(
        "MSC0414",
        "a pass lacks what it requires",
        "Each pass says what it requires of a module. In this pipeline the module does not have it: the message names"
        " what is missing and the passes that make it, the note the first operation in the way. `msc stages --passes`"
        " shows what every pass requires, and in which order msc runs them.",
    ),
    Code(
        "MSC0415",
        "no batch",
        "`vmap` met an operation that cannot run on a batch of examples: a branch or a loop that the elements of an"
        " example decide. Write the choice with `ops.where`. In PyNative mode, and where `fullgraph=True` is not asked"
        " for, such a function runs on one example after the other.",
    ),
)
