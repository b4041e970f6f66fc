"""The command line of mlir-opt and xdsl-opt in the words of `msc opt`: what people type who know those."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msc.driver.passes.registry import all_passes

_SAME = {
    "--pass-pipeline": "--passes",
    "--mlir-print-ir-after": "--print-ir-after",
    "--mlir-print-ir-after-all": "--print-ir-after=all",
    "--print-ir-after-all": "--print-ir-after=all",
    "--mlir-print-ir-after-change": "--print-ir-after=changed",
    "--mlir-timing": "--timing",
    "--mlir-print-op-generic": "--generic",
    "--print-op-generic": "--generic",
    "--mlir-print-debuginfo": "--debuginfo",
    "--print-debuginfo": "--debuginfo",
}
_ANCHORED = re.compile(r"(?:builtin\.)?(?:module|any)\((.*)\)", re.DOTALL)


def translated(args: Sequence[str]) -> list[str]:
    """The arguments with the options of `msc opt`; options that are passes become one pipeline, in their order."""
    single = [_spelt(argument) for argument in args]
    passes = all_passes() if any(argument.startswith("--") for argument in single) else ()
    own = list(_pipeline(single, passes))
    rest = [argument for argument in single if _pass_of(argument, passes) is None]
    return [*rest, "--passes", ",".join(own)] if own else rest


def _pipeline(args: Sequence[str], passes: Collection[str]) -> Iterator[str]:
    for argument in args:
        name = _pass_of(argument, passes)
        if name is not None:
            options = argument.partition("=")[2].strip("'\"{}")
            yield f"{name}{{{options}}}" if options else name


def _pass_of(argument: str, passes: Collection[str]) -> str | None:
    name = argument.partition("=")[0].removeprefix("--")
    return name if argument.startswith("--") and name in passes else None


def _spelt(argument: str) -> str:
    """An option of mlir-opt as ours; `builtin.module(...)` around a pipeline says what msc runs passes on anyway."""
    name, equals, value = argument.partition("=")
    ours = _SAME.get(name)
    if ours is None:
        return argument
    anchored = _ANCHORED.fullmatch(value.strip())
    return f"{ours}{equals}{value if anchored is None else anchored[1]}"
