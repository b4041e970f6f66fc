"""Stages verified by other processes, while this one makes the next stage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from typing import Self

from xdsl.dialects.builtin import ModuleOp

from msc.support.forked import Lines, begun

WORTH_A_PROCESS = 200
"""Operations of a module: forking a compiler takes as long as verifying so many."""


def is_worth_a_process(module: ModuleOp) -> bool:
    """Whether another process verifies a module sooner than this one."""
    return any(True for _ in islice(module.walk(), WORTH_A_PROCESS, None))


class Unverified(Exception):
    """Another process did not find a stage in order. Who verifies each stage before the next is made learns why."""


class BackgroundChecks:
    """A context that ends when all checks of a module have.

    Raises Unverified where one failed, also in place of later errors.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._processes = ExitStack()
        self._verdicts = list[Callable[[], Lines | None]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._processes:
            if error is not None and not isinstance(error, Exception):
                return
            if any(verdict() is None for verdict in self._verdicts):
                raise Unverified from error

    def begin(self, check: Callable[[], None]) -> None:
        """Call `check`, which raises what is wrong, in another process if that pays and there can be one."""

        def checked() -> Lines:
            check()
            return []

        verdict = self._processes.enter_context(begun(checked)) if is_worth_a_process(self._module) else None
        if verdict is None:
            check()
        else:
            self._verdicts.append(verdict)
