"""What optimisers have in common: parameter groups, learning rates, weight decay, the scale of the loss.

An update is written with operations on tensors, so that in graph mode all of a step is one graph, whose element-wise
chains become one loop a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter, ParameterTuple
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.nn.optim.schedules import LearningRateSchedule
from msc.support.argument_values import described
from msc.support.diagnostics import did_you_mean
from msc.support.wording import a

__all__ = ["Optimizer"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


def opt_init_args_register(fn: FunctionT) -> FunctionT:
    """The initialiser of an optimizer itself, which MindSpore has keep its arguments."""
    return fn


class Optimizer(Cell):
    """Base: `optimizer(gradients)` updates `parameters`, in their order.

    `learning_rate` is a number, a schedule (a Cell from the step to the rate) or a sequence with a rate for each step.
    `parameters` are Parameters, or groups: `{"params": [...], "lr": ..., "weight_decay": ...}`, and at most one
    `{"order_params": [...]}`, in whose order gradients are given. `weight_decay`, a number or a Cell from the step to
    it, times a parameter is added to its gradient, but, without groups, of those named beta and gamma. Gradients are
    divided by `loss_scale`; a group with `grad_centralization` takes their means off. Raises MSC0858.
    """

    MEMBERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "_parameters": lambda self: self.parameters,
        "assignadd": lambda _: ops.AssignAdd(),
        "cast": lambda _: ops.Cast(),
        "decay_flags": lambda self: tuple(bool(decay) for decay in self._decays),
        "dynamic_lr": lambda self: any(not isinstance(rate, float | Parameter) for rate in self._rates),
        "exec_weight_decay": lambda self: any(map(bool, self._decays)),
        "global_step_increase_tensor": lambda _: Tensor(1, dtypes.int32),
        "hyper_map": lambda _: ops.HyperMap(),
        "is_group_lr": lambda self: self.is_group,
        "is_group_params_ordered": lambda self: self.is_group,
        "map_": lambda _: ops.Map(),
        "need_scale": lambda self: self.loss_scale != 1,
        "optim_filter": lambda self: (True,) * len(self.parameters),
        "param_length": lambda self: len(self.parameters),
        "reciprocal_scale": lambda self: Tensor(1 / self.loss_scale, dtypes.float32),
        "use_parallel": lambda _: False,
        "weight_decay": lambda self: self.get_weight_decay(),
    }

    def __init__(
        self,
        learning_rate: Any,
        parameters: Any,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(auto_prefix=False)
        groups = list(self._groups(parameters, learning_rate, weight_decay))
        found = [(p, rate, decay, own) for members, rate, decay, own in groups for p in members]
        if isinstance(parameters, list) and groups:
            found = self._ordered(cast(Sequence[Any], parameters), found)
        if len({id(p) for p, *_ in found}) != len(found):
            raise ApiValueError("MSC0858", f"{self._kind}: a parameter is in two groups")
        self.loss_scale = self._number("loss_scale", loss_scale, positive=True)
        self.is_group = any(isinstance(p, Mapping) for p in _listed(parameters))
        self.global_step = Parameter(Tensor(0, dtypes.int32), name="global_step", requires_grad=False)
        self.parameters = ParameterTuple([p for p, *_ in found])
        self._rates = [rate for _, rate, _, _ in found]
        self._decays = [decay for _, _, decay, _ in found]
        self._centralised = [bool(centralised) for *_, centralised in found]
        self._schedules = [rate for rate in self._rates if isinstance(rate, LearningRateSchedule)]
        decays = [decay for decay in self._decays if isinstance(decay, Cell)]
        for number, schedule in enumerate([*self._schedules, *decays]):
            setattr(self, f"schedule{number}", schedule)

    @property
    def target(self) -> str:
        """Where sparse updates run, as MindSpore asks: on the CPU."""
        return "CPU"

    @target.setter
    def target(self, value: str) -> None:
        unused("Optimizer", primitive_target=value)

    @property
    def unique(self) -> bool:
        """Whether equal indices of sparse gradients are joined: gradients are dense."""
        return True

    @property
    def _kind(self) -> str:
        return type(self).__name__

    # Arguments.

    def _groups(self, given: Any, rate: Any, decay: Any) -> Iterable[tuple[list[Parameter], Any, Any, bool]]:
        """The groups with their rates and decays, and whether their gradients are centralised."""
        items = _listed(given)
        if not items:
            raise ApiValueError("MSC0858", f"{self._kind} has no parameters", help="net.trainable_params() lists them")
        if not any(isinstance(item, Mapping) for item in items):
            found, own, rate = (
                [self._parameter(p) for p in items],
                self._decay(decay),
                self._rate(rate),
            )
            for member in found:
                yield [member], rate, 0.0 if "beta" in member.name or "gamma" in member.name else own, False
            return
        for group in items:
            if not isinstance(group, Mapping):
                raise ApiTypeError("MSC0858", f"{self._kind}: Parameters stand beside groups of them")
            named = cast(Mapping[str, Any], group)
            for key in named:
                if key not in _GROUP_KEYS:
                    near = did_you_mean(key, _GROUP_KEYS)
                    raise ApiValueError("MSC0858", f"{self._kind}: a group has no '{key}'", help=near)
            if "params" in named:
                members = [self._parameter(p) for p in named["params"]]
                own, is_centralised = self._decay(named.get("weight_decay", decay)), named.get("grad_centralization")
                yield members, self._rate(named.get("lr", rate)), own, bool(is_centralised)

    def _ordered(self, items: Sequence[Any], found: list[tuple[Parameter, Any, Any, bool]]) -> Any:
        order = next(
            (cast(Any, g)["order_params"] for g in items if isinstance(g, Mapping) and "order_params" in g), None
        )
        if order is None:
            return found
        by_id = {id(p): (p, *options) for p, *options in found}
        wanted = [by_id.get(id(p)) for p in order]
        if None in wanted or len(wanted) != len(found):
            raise ApiValueError("MSC0858", f"{self._kind}: order_params are the parameters of the groups, each once")
        return wanted

    def _parameter(self, given: object) -> Parameter:
        if not isinstance(given, Parameter):
            raise ApiTypeError(
                "MSC0858",
                f"{self._kind} updates Parameters; this is {described(given)}",
                help="those of a Cell: net.trainable_params()",
            )
        if given.dtype.category != dtypes.FLOAT:
            raise ApiTypeError("MSC0858", f"{self._kind} cannot update '{given.name}', which is {given.dtype}")
        return given

    def _number(self, name: str, value: Any, *, positive: bool = False, below_one: bool = False) -> float:
        """A number as an option. Raises MSC0858."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ApiTypeError("MSC0858", f"{self._kind}: {name} is a number, not {a(type(value).__name__)}")
        low = value <= 0 if positive else value < 0
        if low or value != value or (below_one and value >= 1):
            limit = "above 0" if positive else "from 0 on" + (", below 1" if below_one else "")
            raise ApiValueError("MSC0858", f"{self._kind}: {name} is {value}; it must be {limit}")
        return float(value)

    def _decay(self, given: Any) -> Any:
        """A weight decay: a number, or a Cell from the step to it."""
        return given if isinstance(given, Cell) else self._number("weight_decay", given)

    def _rate(self, given: Any) -> Any:
        """A learning rate: a number, a schedule, or a tensor of the rates of steps."""
        if isinstance(given, LearningRateSchedule):
            return given
        if isinstance(given, Tensor) and given.ndim == 0:
            given = float(given)
        if isinstance(given, Iterator):
            given = list(cast(Iterator[Any], given))
        if isinstance(given, Tensor | list | tuple | np.ndarray):
            table = np.asarray(given.asnumpy() if isinstance(given, Tensor) else given, np.float32)
            if table.ndim != 1 or not table.size:
                raise ApiValueError("MSC0858", f"{self._kind}: the learning rates of steps are a list of numbers")
            return Tensor(table)
        if isinstance(given, Cell):
            raise ApiTypeError(
                "MSC0858", f"{self._kind}: a schedule is a LearningRateSchedule, not {a(type(given).__name__)}"
            )
        return self._number("learning_rate", given)

    # What subclasses use.

    def states(self, prefix: str, init: str = "zeros") -> ParameterTuple:
        """A state for each parameter, of its shape and type: `prefix.name`."""
        made = self.parameters.clone(prefix, init)
        for state in made:
            state.requires_grad = False
        return made

    def get_lr(self) -> Any:
        """The learning rate of this step: one, or a tuple with one for each parameter if they differ."""
        current = {id(rate): self._current(rate) for rate in self._rates}
        rates = [current[id(rate)] for rate in self._rates]
        return tuple(rates) if self.is_group else rates[0]

    def get_lr_parameter(self, param: Parameter) -> Any:
        """The learning rate of a parameter, as it was given."""
        return self._rates[self._place(param)]

    def __getattr__(self, name: str) -> Any:
        """`learning_rate`: the schedule or the list that was given; a number becomes a parameter that one may set."""
        if name != "learning_rate" or "_rates" not in self.__dict__ or name in self._params:
            return super().__getattr__(name)
        first = self._rates[0]
        return self.changeable_rate() if isinstance(first, float) else first

    def changeable_rate(self) -> Parameter:
        """The learning rate as a parameter, which callbacks change: a constant becomes one at the first call.

        Raises MSC0858 where a schedule, a list or the rates of groups say the rate.
        """
        rates = {id(rate): rate for rate in self._rates}
        first = self._rates[0]
        if isinstance(first, Parameter):
            return first
        if len({rate if isinstance(rate, float) else None for rate in rates.values()} - {None}) != 1 or self._schedules:
            raise ApiValueError("MSC0858", f"{self._kind}: its learning rate is no single number that could be changed")
        self.learning_rate = Parameter(Tensor(first, dtypes.float32), name="learning_rate", requires_grad=False)
        self.learning_rate.varies = True
        self._rates = [self.learning_rate] * len(self._rates)
        return self.learning_rate

    def _place(self, param: Parameter) -> int:
        for number, own in enumerate(self.parameters):
            if own is param:
                return number
        raise ApiValueError("MSC0858", f"{self._kind} does not update '{param.name}'")

    def _current(self, rate: Any) -> Tensor:
        if isinstance(rate, LearningRateSchedule):
            return rate(self.global_step.value())
        if isinstance(rate, Parameter):
            return rate.value()
        if isinstance(rate, Tensor):
            last = ops.minimum(self.global_step.value(), Tensor(rate.shape[0] - 1, dtypes.int32))
            return ops.gather(rate, last, 0)
        return Tensor(rate, dtypes.float32)

    def construct(self, gradients: Any) -> Any:
        """Update all parameters."""
        found: Sequence[Tensor] = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
        if len(found) != len(self.parameters):
            message = f"{self._kind} updates {len(self.parameters)} parameters, but was given {len(found)} gradients"
            raise ApiValueError("MSC0858", message)
        rates = self.get_lr()
        shared = self.begin_step()
        for number, (parameter, gradient) in enumerate(zip(self.parameters, found, strict=True)):
            if gradient.shape != parameter.shape:
                message = f"the gradient of '{parameter.name}' has shape {gradient.shape}, not {parameter.shape}"
                raise ApiValueError("MSC0858", f"{self._kind}: {message}")
            value = parameter.value()
            gradient = _centralised(gradient) if self._centralised[number] else gradient
            gradient = gradient if self.loss_scale == 1 else gradient * (1 / self.loss_scale)
            rate = cast(Tensor, rates[number] if isinstance(rates, tuple) else rates)
            rate = rate if rate.dtype is value.dtype else rate.astype(value.dtype)
            gradient = self.decayed(number, value, gradient)
            parameter.replace(self.updated(number, value, gradient, rate, shared).content)
        self.global_step.replace((self.global_step.value() + 1).content)
        return True

    def decayed(self, number: int, value: Tensor, gradient: Tensor) -> Tensor:
        """The gradient with the decay of the weight."""
        decay = self._decays[number]
        if isinstance(decay, Cell):
            return gradient + value * cast(Tensor, decay(self.global_step.value()))
        return gradient + value * decay if decay else gradient

    def without_decay(self) -> list[Any]:
        """Decay weights no more; the decays, for what does it instead."""
        found, self._decays = self._decays, [0.0] * len(self._decays)
        return found

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients with the decays of their weights."""
        pairs = zip(self.parameters, gradients, strict=True)
        return tuple(self.decayed(n, p.value(), g) for n, (p, g) in enumerate(pairs))

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients divided by the scale of the loss."""
        return tuple(g if self.loss_scale == 1 else g * (1 / self.loss_scale) for g in gradients)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Gradients less their means, in the groups that ask for it."""
        return tuple(_centralised(g) if self._centralised[n] else g for n, g in enumerate(gradients))

    def flatten_gradients(self, gradients: Any) -> Any:
        """The gradients themselves: parameters lie apart."""
        return gradients

    def get_weight_decay(self) -> Any:
        """The weight decay of this step: one, or a tuple with one for each parameter if there are groups."""
        step = self.global_step.value()
        decays = [decay(step) if isinstance(decay, Cell) else decay for decay in self._decays]
        return tuple(decays) if self.is_group else max(decays, key=float)

    def broadcast_params(self, optim_result: Any) -> Any:
        """Give the parameters to other devices, of which there are none: the result of the update itself."""
        return optim_result

    def begin_step(self) -> Any:
        """What is computed once for all parameters, and handed to `updated` as `shared`."""
        return None

    def updated(self, number: int, value: Tensor, gradient: Tensor, rate: Tensor, shared: Any) -> Tensor:
        """The new value of parameter `number`."""
        raise ApiTypeError("MSC0858", f"{self._kind} does not say how it updates a parameter")

    def extend_repr(self) -> str:
        return f"parameters={len(self.parameters)}"


def _listed(given: Any) -> list[Any]:
    if isinstance(given, Parameter):
        return [given]
    return list(cast(Iterable[Any], given)) if isinstance(given, Iterable) else [given]


def _centralised(gradient: Tensor) -> Tensor:
    """The gradient less its mean over all axes but the first, if it has more than one (Yong et al., 2020)."""
    if gradient.ndim < 2:
        return gradient
    return gradient - gradient.mean(axis=tuple(range(1, gradient.ndim)), keep_dims=True)
