"""Transformations under MindSpore's names. In graph mode, or of a compiled function, they are compiled as well."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msc.frontend.boundary import public
from msc.frontend.capture import INSTALLED
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.jit import Jitted
from msc.frontend.modes import in_graph_mode
from msc.frontend.parameter import Parameter
from msc.support.wording import a

__all__ = ["GradOperation", "get_grad", "grad", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp", "vmap"]


class Transformed:
    """A function that was made of another one by a transformation."""

    def __init__(self, function: Any, call: Callable[..., Any], positions: tuple[int, ...] | None = None) -> None:
        self._function, self._call, self._positions = function, call, positions
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from msc.frontend.transforms.gradients import as_tensor

        places = range(len(args)) if self._positions is None else self._positions
        given = tuple(as_tensor(a) if k in places else a for k, a in enumerate(args))
        if INSTALLED.builder is None and (in_graph_mode() or isinstance(self._function, Jitted)):
            return self._compiled(*given, **kwargs)
        return self._call(*given, **kwargs)

    @functools.cached_property
    def _compiled(self) -> Jitted[..., Any]:
        return Jitted(self._call)

    def __repr__(self) -> str:
        return f"<{type(self._call).__name__} of {self._function!r}>"


def _function_of(transformed: Transformed, *_: Any) -> Any:
    return transformed.__wrapped__  # pyright: ignore


Transformed.__call__ = public(Transformed.__call__, "Transformed", _function_of)


def grad(
    fn: Any,
    grad_position: int | tuple[int, ...] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Transformed:
    """The function that gives the derivatives of the sum of what `fn` gives, by its inputs and by weights.

    A position gives one gradient, a tuple of them a tuple, None those of the `weights` (a Parameter or several); with
    both it is a pair. With `has_aux` only the first result counts, and the others follow: `(gradients, others)`.
    `return_ids` puts the position or the parameter's name beside each gradient. With `sens_param` the last argument is
    what the results count, instead of one. Raises MSC0856.
    """
    return _gradient(fn, grad_position, weights, has_aux, return_ids, sens_param, with_value=False)


def value_and_grad(
    fn: Any,
    grad_position: int | tuple[int, ...] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Transformed:
    """The function that gives what `fn` gives, and the gradients, as `grad` does: `(value, gradients)`."""
    return _gradient(fn, grad_position, weights, has_aux, return_ids, sens_param, with_value=True)


def _gradient(
    fn: Any, grad_position: Any, weights: Any, has_aux: bool, return_ids: bool, sens_param: bool, *, with_value: bool
) -> Transformed:
    from msc.frontend.transforms.gradients import GradientCall, weights_of

    _check(fn, "grad")
    positions = None if grad_position is None else _positions(grad_position)
    if positions is None and weights is None:
        raise ApiValueError("MSC0856", "grad_position and weights are both None: there is nothing to differentiate by")
    named = None if weights is None else weights_of(weights)
    single, one = isinstance(grad_position, int), isinstance(weights, Parameter)
    call = GradientCall(
        fn, positions, single, named, one, bool(has_aux), bool(return_ids), with_value, with_sens=bool(sens_param)
    )
    return Transformed(fn, call, positions or ())


def _check(fn: Any, name: str) -> None:
    if not callable(fn):
        raise ApiTypeError("MSC0856", f"{name} takes a function or a Cell, not {a(type(fn).__name__)}")


def _positions(given: Any) -> tuple[int, ...]:
    found = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not all(isinstance(p, int) and not isinstance(p, bool) and p >= 0 for p in found):
        raise ApiTypeError("MSC0856", f"grad_position is {given!r}; it is a number from 0 on, a tuple of them, or None")
    return found


class GradOperation:
    """`GradOperation(get_all, get_by_list, sens_param)(net, weights)`: gradients as early MindSpore asks for them.

    By the first input, by all (`get_all`), or by weights (`get_by_list`); by both, a pair. With `sens_param` the last
    argument is what the results count.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Any, weights: Any = None) -> Transformed:
        from msc.frontend.transforms.gradients import GradientCall, weights_of

        _check(fn, "GradOperation")
        named = None
        if self.get_by_list:
            if weights is None and not hasattr(fn, "trainable_params"):
                raise ApiValueError("MSC0856", "GradOperation with get_by_list needs weights")
            named = weights_of(fn.trainable_params() if weights is None else weights)
        positions = () if self.get_by_list and not self.get_all else (0,)
        call = GradientCall(fn, positions, not self.get_all, named, with_sens=self.sens_param, all_inputs=self.get_all)
        return Transformed(fn, call, None if self.get_all else positions)


def get_grad(gradients: Any, identifier: int | Parameter) -> Any:
    """Of the gradients that `grad` gives with `return_ids`, the one by an input, by its position, or by a Parameter.

    Raises MSC0856 where there is none.
    """
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier
    found = _identified(gradients, wanted)
    if found is None:
        help_ = "grad and value_and_grad put identifiers beside gradients with return_ids=True"
        raise ApiValueError("MSC0856", f"get_grad: there is no gradient by {wanted!r}", help=help_)
    return found


def _identified(gradients: Any, wanted: Any) -> Any:
    if not isinstance(gradients, tuple | list):
        return None
    if len(gradients) == 2 and isinstance(gradients[0], int | str):
        return gradients[1] if gradients[0] == wanted else None
    return next((g for g in (_identified(part, wanted) for part in gradients) if g is not None), None)


def vmap(fn: Any, in_axes: Any = 0, out_axes: Any = 0) -> Transformed:
    """The function that runs `fn`, which is written for one example, on batches of them.

    `in_axes` says which axis of each argument counts the examples, None for one that all share; `out_axes` where that
    axis is in results, None for one that is the same for all. Both may be structures like those of arguments and
    results. Random numbers are the same for all examples, as in MindSpore; numbers that differ are an argument. Of a
    list of functions or a CellList each runs on its own example. Raises MSC0857.
    """
    from msc.frontend.transforms.batches import BatchCall, is_several

    if is_several(fn):
        functions = tuple(fn)
        for function in functions or (None,):
            _check(function, "vmap")
        return Transformed(functions[0], BatchCall(functions, in_axes, out_axes), ())
    _check(fn, "vmap")
    return Transformed(fn, BatchCall(fn, in_axes, out_axes), ())


def jacrev(fn: Any, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False) -> Transformed:
    """The function that gives the Jacobian of `fn`, row by row: for few results."""
    return _jacobian(fn, grad_position, has_aux, forward=False)


def jacfwd(fn: Any, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False) -> Transformed:
    """The function that gives the Jacobian of `fn`, column by column: for few inputs."""
    return _jacobian(fn, grad_position, has_aux, forward=True)


def _jacobian(fn: Any, grad_position: Any, has_aux: bool, *, forward: bool) -> Transformed:
    from msc.frontend.transforms.batches import JacobianCall

    _check(fn, "jacfwd" if forward else "jacrev")
    positions = _positions(grad_position)
    call = JacobianCall(fn, positions, isinstance(grad_position, int), has_aux, forward)
    return Transformed(fn, call, positions)


def jvp(fn: Any, inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """The value of a function and its derivative in the direction `v`: a tensor, or a tuple with one for each input.

    With `has_aux` what the function gives beside its value comes third. Raises MSC0856.
    """
    from msc.frontend.transforms import gradients

    _check(fn, "jvp")
    return gradients.jvp(fn, inputs, v, has_aux)


def vjp(fn: Any, *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """The value of a function, and the function that pulls back: from what the value counts to gradients by inputs.

    With `weights` that one gives a pair, of gradients by inputs and by weights; with `has_aux` what the function gives
    beside its value comes third. Raises MSC0856.
    """
    from msc.frontend.transforms import gradients

    _check(fn, "vjp")
    return gradients.vjp(fn, *inputs, weights=weights, has_aux=has_aux)
