"""Functions that are called around a cell: before and after `construct`, and where its gradients arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from msc.frontend.changes import Changes
from msc.ops.gradient_hooks import watched
from msc.ops.primitive import several

Hook: TypeAlias = Callable[..., Any]
Caller: TypeAlias = Callable[[Hook, tuple[Any, ...], dict[str, Any]], Any]
"""Calls a hook with these arguments."""


def called(hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a hook gives where no graph is written."""
    return hook(*args, **kwargs)


class Handle:
    """A hook that was registered; `remove()` takes it away."""

    def __init__(self, hooks: list[Hook], hook: Hook) -> None:
        Changes.count += 1
        hooks.append(hook)
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Do not call the hook any more."""
        Changes.count += 1
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


class CellHooks:
    """The hooks of a cell by their moment, each in the order in which they were registered."""

    def __init__(self) -> None:
        self.before: list[Hook] = []
        self.after: list[Hook] = []
        self.gradients: list[Hook] = []
        """Called with the cell, the gradients by its inputs and those of its outputs."""
        self.output_gradients: list[Hook] = []
        """Called with the cell and the gradients of its outputs."""

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.gradients or self.output_gradients)

    def functions(self) -> tuple[Hook | None, ...]:
        """All hooks, those of one moment apart from those of another."""
        return (*self.before, None, *self.after, None, *self.gradients, None, *self.output_gradients)

    def run(self, cell: Any, construct: Callable[..., Any], args: tuple[Any, ...], call: Caller) -> Any:
        """What `construct` gives for the arguments, with all hooks around it."""
        for hook in self.before:
            args = _instead(call(hook, (cell, args), {}), args)
        if not self.gradients and not self.output_gradients:
            return self._after(cell, args, construct(*args), call)
        arrived: list[tuple[Any, ...]] = []
        args = watched(type(cell).__name__, args, lambda counts: self._of_inputs(cell, counts, arrived, call))
        result = self._after(cell, args, construct(*args), call)
        outputs = several(result)
        seen = watched(type(cell).__name__, outputs, lambda counts: self._of_outputs(cell, counts, arrived, call))
        return seen if isinstance(result, tuple) else seen[0]

    def _after(self, cell: Any, args: tuple[Any, ...], result: Any, call: Caller) -> Any:
        for hook in self.after:
            changed = call(hook, (cell, args, result), {})
            result = result if changed is None else changed
        return result

    def _of_outputs(
        self, cell: Any, counts: tuple[Any, ...], arrived: list[tuple[Any, ...]], call: Caller
    ) -> tuple[Any, ...]:
        for hook in self.output_gradients:
            counts = _instead(call(hook, (cell, counts), {}), counts)
        arrived.append(counts)
        return counts

    def _of_inputs(
        self, cell: Any, counts: tuple[Any, ...], arrived: list[tuple[Any, ...]], call: Caller
    ) -> tuple[Any, ...]:
        for hook in self.gradients:
            counts = _instead(call(hook, (cell, counts, arrived[-1]), {}), counts)
        return counts


def _instead(changed: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a hook gave, as a tuple; what was there before if it gave nothing."""
    if changed is None:
        return before
    return several(tuple(cast(Sequence[Any], changed)) if isinstance(changed, list) else changed)
