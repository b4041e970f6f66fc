"""Operators and hooks that see, or change, a gradient on its way back; forward they give what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msc.frontend.capture import INSTALLED
from msc.frontend.errors import ApiTypeError
from msc.frontend.modes import Hooks
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.operands import only_tensor
from msc.ops.primitive import Primitive
from msc.support.wording import a

__all__ = ["HookBackward", "InsertGradientOf"]


def watched(name: str, inputs: tuple[Any, ...], change: Callable[[tuple[Any, ...]], Any]) -> tuple[Any, ...]:
    """The inputs, whose gradients `change` is called with: what it gives, if anything, takes their place."""
    if INSTALLED.builder is None:
        return inputs

    def bprop(*given: Any) -> Any:
        counts = given[-1]
        changed = change(counts)
        return counts if changed is None else changed

    return Hooks.with_bprop(lambda *same: same, bprop, inputs, name)


def _function(name: str, given: object) -> Callable[..., Any]:
    if not callable(given):
        raise ApiTypeError("MSC0811", f"{name} takes a function, not {a(type(given).__name__)}")
    return given


class InsertGradientOf(Primitive):
    """`InsertGradientOf(f)`: the identity, whose gradient is `f` of the gradient."""

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__("InsertGradientOf")
        self.f = _function("InsertGradientOf", f)

    def __call__(self, *inputs: Any) -> Tensor:
        (x,) = inputs
        (same,) = watched(self.name, (only_tensor(x, self.name),), lambda counts: (self.f(counts[0]),))
        return same


class HookBackward(Primitive):
    """`HookBackward(hook_fn)`: the identity of one tensor or several, which calls `hook_fn` with their gradients.

    `hook_fn` takes a tuple; what it gives, if anything, is the gradient instead.
    """

    def __init__(self, hook_fn: Callable[..., Any], cell_id: str = "") -> None:
        super().__init__("HookBackward")
        unused("HookBackward", cell_id=cell_id)
        self.hook_fn = _function("HookBackward", hook_fn)

    def __call__(self, *inputs: Tensor) -> Any:
        found = watched(self.name, tuple(only_tensor(x, self.name) for x in inputs), self.hook_fn)
        return found[0] if len(found) == 1 else found


class _TensorHook:
    """A hook of a tensor; `remove()` takes it away."""

    def __init__(self, hook: Callable[[Tensor], Any]) -> None:
        self._hook: Callable[[Tensor], Any] | None = hook

    def called(self, counts: tuple[Any, ...]) -> Any:
        return None if self._hook is None else self._hook(counts[0])

    def remove(self) -> None:
        """Do not call the hook any more."""
        self._hook = None


@tensor_method("register_hook")
def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> _TensorHook:
    """Call `hook` with the gradient of what uses the tensor from here on; what it gives, if anything, is it instead."""
    made = _TensorHook(_function("register_hook", hook))
    (same,) = watched("register_hook", (self,), made.called)
    if same is not self:
        self.replace(same.content)
    return made
