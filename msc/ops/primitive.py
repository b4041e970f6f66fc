"""`Primitive`: an operator as an object, which holds its attributes and is called with tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from msc.frontend.boundary import public
from msc.frontend.capture import INSTALLED
from msc.frontend.dtypes import DType
from msc.frontend.errors import ApiAttributeError, ApiTypeError, ApiValueError
from msc.frontend.modes import Hooks
from msc.frontend.parallel import all_laid, checked_strategy, is_partitioned
from msc.frontend.precision import ComputePrecision, computing_in, given
from msc.frontend.settings import tell_once, unused
from msc.frontend.tensor import Tensor, concrete
from msc.support.argument_values import described
from msc.support.diagnostics import did_you_mean
from msc.support.wording import a

__all__ = ["Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_attr_register", "several"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

REGISTERED: dict[str, type[Primitive]] = {}
"""The operators of msc by name: what runs a primitive of a user that has the name of one."""


def _described(primitive: Primitive, *_: Any) -> Callable[..., Any]:
    """The function whose signature says what a call of a primitive takes."""
    if isinstance(primitive, Operator):
        taken = partial(type(primitive).FUNCTION, **{name: primitive.attrs[name] for name in primitive.DEFAULTS})
        vars(taken)["__name__"] = type(primitive).__name__
        return taken
    return getattr(primitive, "construct", None) or getattr(primitive, "vm_impl", primitive.__call__)


class Primitive:
    """An operator with a name and attributes. A subclass that is to run defines `construct` (on tensors).

    `vm_impl(*arrays)` on NumPy arrays does as well; then the result is not compiled. A primitive without either runs as
    the operator of msc that has its name. `bprop(*inputs, out, dout)` says its gradient, which `vm_impl` needs; a
    method `get_bprop()` that gives such a function does as well.
    """

    attrs: dict[str, Any]

    def __init__(self, name: str) -> None:
        self.name = name
        self.attrs = {}
        self.instance_name = name
        self.in_strategy: Any = None
        self.out_strategy: Any = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        """The operators of the library tell of wrong arguments in the words of the API."""
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith("msc."):
            if "__init__" in vars(cls):
                cls.__init__ = public(cls.__init__, cls.__name__)
            if "__call__" in vars(cls):
                cls.__call__ = public(cls.__call__, cls.__name__, _described)

    def add_prim_attr(self, name: str, value: Any) -> Self:
        """Set an attribute."""
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Self:
        """Remove an attribute."""
        self.attrs.pop(name, None)
        return self

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Name the inputs and outputs."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_prim_instance_name(self, name: str) -> Self:
        """Give this object a name of its own."""
        self.instance_name = name
        return self

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Self:
        """How operands, and results, lie where ranks share graphs: rows of numbers of parts, or `Layout`s.

        Raises MSC0887.
        """
        for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            checked_strategy(f"{self.name}.shard", name, strategy)
        self.in_strategy, self.out_strategy = in_strategy, out_strategy
        return self.add_prim_attr("in_strategy", in_strategy)

    def set_strategy(self, strategy: Any) -> Self:
        """The name of `shard` in MindSpore's first versions. Raises MSC0887."""
        modern = f"{self.name}().shard({strategy!r})"
        tell_once((self.name, "set_strategy"), "MSC0886", f"{self.name}: set_strategy is now shard", help=modern)
        return self.shard(strategy)

    def set_device(self, device_target: str) -> Self:
        """Keep the device that is asked for; there is one. Raises MSC0887."""
        unused(f"{self.name}.set_device", primitive_target=device_target)
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> Self:
        """Keep the pipeline stage that is asked for; there is one."""
        unused(f"{self.name}.set_stage", stage=stage)
        return self.add_prim_attr("stage", stage)

    def recompute(self, mode: bool = True) -> Self:
        """Whether the result is computed again for the gradient; False stores it inside a cell that recomputes, too.

        Raises MSC0828 for a mode that is no bool.
        """
        if type(mode) is not bool:
            raise ApiTypeError("MSC0828", f"recompute: mode is {a(type(mode).__name__)}, not True or False")
        return self.add_prim_attr("recompute", mode)

    def __call__(self, *inputs: Any) -> Any:
        for method in ("construct", "vm_impl"):
            if hasattr(type(self), method):
                own = partial(self._run_own, method)
                run = partial(self._differentiated, own, inputs, is_traced=method == "construct")
                return self._recomputed(run)
        known = REGISTERED.get(self.name)
        if known is None or isinstance(self, known):
            raise ApiAttributeError(
                "MSC0827",
                f"primitive {self.name} has no implementation",
                help=f"define construct(self, ...) in {type(self).__name__}, which computes on tensors",
            )
        parameters = signature(known.__init__).parameters if not issubclass(known, Operator) else known.DEFAULTS
        primitive = known(**{name: value for name, value in self.attrs.items() if name in parameters})
        return self._recomputed(lambda: self._differentiated(primitive, inputs, is_traced=True))

    def _differentiated(self, run: Callable[..., Any], inputs: tuple[Any, ...], *, is_traced: bool) -> Any:
        """What `run` gives; its gradient is that of `bprop`, or, if it is traced, that of its operations."""
        bprop = self._bprop()
        if INSTALLED.builder is None or (is_traced and bprop is None):
            return run(*inputs)
        return Hooks.with_bprop(run, bprop, inputs, self.name)

    def _bprop(self) -> Callable[..., Any] | None:
        given: Callable[..., Any] | None = getattr(self, "bprop", None)
        return self.get_bprop() if given is None and hasattr(type(self), "get_bprop") else given

    def _recomputed(self, run: Callable[[], Any]) -> Any:
        """What `run` gives, computed again for the gradient, or stored, as `recompute` has said."""
        mode: bool | None = self.attrs.get("recompute")
        precision = ComputePrecision.of_primitive(self.name)
        with computing_in(precision):
            return given(precision, self._cut(run) if mode is None else Hooks.recompute(run, mode))

    def _cut(self, run: Callable[[], Any]) -> Any:
        """What `run` gives, cut as `shard` says if ranks share the graph. Raises MSC1109 if nothing could be."""
        if INSTALLED.builder is None or not is_partitioned():
            return run()
        if self.in_strategy is None:
            return all_laid(f"{self.name}.shard", run(), self.out_strategy)
        INSTALLED.strategy = self.in_strategy
        try:
            result = run()
            if INSTALLED.strategy is not None:
                message = f"{self.name}.shard: {described(self.in_strategy)} has not the operands' dimensions"
                raise ApiValueError(
                    "MSC1109", message, help="give a row for each operand, a number or an axis for each dimension"
                )
        finally:
            INSTALLED.strategy = None
        return all_laid(f"{self.name}.shard", result, self.out_strategy)

    def _run_own(self, method: str, *inputs: Any) -> Any:
        implementation = getattr(self, method)
        if method == "construct":
            return implementation(*inputs)
        arrays: list[Any] = [concrete(x, self.name) if isinstance(x, Tensor) else x for x in inputs]
        result: Any = implementation(*arrays)
        tensors = [Tensor(np.asarray(r)) for r in several(result)]
        return tuple(tensors) if isinstance(result, tuple) else tensors[0]

    def __getattr__(self, name: str) -> Any:
        attributes: dict[str, Any] = self.__dict__.get("attrs", {})
        if name in attributes:
            return attributes[name]
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.attrs.items() if k not in ("input_names", "output_names")}
        return f"Prim[{self.name}]" + (f"<{', '.join(f'{k}={v}' for k, v in shown.items())}>" if shown else "")


Primitive.__init__ = public(Primitive.__init__, "Primitive")
Primitive.__call__ = public(Primitive.__call__, "Primitive", _described)


def several(result: Any) -> tuple[Any, ...]:
    """The results of a function that gives one or a tuple."""
    return cast(tuple[Any, ...], result) if isinstance(result, tuple) else (result,)


class PrimitiveWithInfer(Primitive):
    """A primitive that says what shape and element type its result has: `infer_shape`, `infer_dtype`."""

    infer_shape: Callable[..., Any]
    """The shape of the result from those of the inputs."""

    infer_dtype: Callable[..., Any]
    """The element type of the result from those of the inputs."""

    def __call__(self, *inputs: Any) -> Any:
        result = super().__call__(*inputs)
        self._check(inputs, result)
        return result

    def _check(self, inputs: tuple[Any, ...], result: Any) -> None:
        """What was computed is what was said. Raises MSC0827."""
        if not isinstance(result, Tensor) or not all(isinstance(x, Tensor) for x in inputs):
            return
        if hasattr(type(self), "infer_shape"):
            said = tuple(self.infer_shape(*(list(x.shape) for x in inputs)))
            if said != result.shape:
                raise ApiTypeError("MSC0827", f"{self.name}: infer_shape says {said}, the result is {result.shape}")
        if hasattr(type(self), "infer_dtype"):
            dtype = self.infer_dtype(*(x.dtype for x in inputs))
            if isinstance(dtype, DType) and dtype is not result.dtype:
                raise ApiTypeError("MSC0827", f"{self.name}: infer_dtype says {dtype}, the result is {result.dtype}")


class PrimitiveWithCheck(Primitive):
    """A primitive that checks its inputs: `check_shape`, `check_dtype`, which raise."""

    def __call__(self, *inputs: Any) -> Any:
        self._check_inputs(inputs)
        return super().__call__(*inputs)

    def _check_inputs(self, inputs: tuple[Any, ...]) -> None:
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        if hasattr(type(self), "check_shape"):
            self.check_shape(*(list(x.shape) for x in tensors))
        if hasattr(type(self), "check_dtype"):
            self.check_dtype(*(x.dtype for x in tensors))


def prim_attr_register(function: FunctionT) -> FunctionT:
    """Decorate `__init__` of a primitive: its arguments become attributes, and the class's name is the primitive's."""
    formal = signature(function)

    @wraps(function)
    def initialise(self: Any, *args: Any, **keywords: Any) -> Any:
        if "attrs" not in self.__dict__:
            Primitive.__init__(self, type(self).__name__)
        bound = formal.bind(self, *args, **keywords)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
        return function(self, *args, **keywords)

    return cast(FunctionT, initialise)


def constexpr(
    fn: Callable[..., Any] | None = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
    check: bool = True,
) -> Any:
    """Decorate a function on Python values: it runs in Python while a graph is captured, and gives constants of it."""
    unused("constexpr", get_instance=get_instance, name=name, reuse_result=reuse_result, check=check)
    if fn is None:
        return constexpr
    if not callable(fn):
        raise ApiTypeError("MSC0811", f"constexpr decorates a function, not {a(type(fn).__name__)}")
    function = fn

    @wraps(fn)
    def in_python(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    del in_python.__wrapped__
    return in_python


class Operator(Primitive):
    """Base of the operators of msc: `FUNCTION(*inputs, **attributes)`, with the attributes' names and defaults."""

    NAME: ClassVar[str]
    DEFAULTS: ClassVar[dict[str, Any]]
    FUNCTION: ClassVar[Callable[..., Any]]

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(self.NAME)
        if len(args) > len(self.DEFAULTS):
            raise ApiTypeError(
                "MSC0828", f"{self.NAME} takes {len(self.DEFAULTS)} arguments, not {len(args)}", help=self._signature()
            )
        given = dict(zip(self.DEFAULTS, args, strict=False))
        for name in keywords:
            if name not in self.DEFAULTS or name in given:
                raise ApiTypeError(
                    "MSC0828",
                    f"{self.NAME} {'takes no argument' if name not in self.DEFAULTS else 'is given twice'} '{name}'",
                    help=did_you_mean(name, self.DEFAULTS) or self._signature(),
                )
        self.attrs.update(self.DEFAULTS | given | keywords)
        for name, value in self.attrs.items():
            if value is Parameter.empty:
                raise ApiTypeError("MSC0828", f"{self.NAME} needs argument '{name}'", help=self._signature())

    def _signature(self) -> str:
        words = (n if v is Parameter.empty else f"{n}={v!r}" for n, v in self.DEFAULTS.items())
        return f"the arguments are {self.NAME}({', '.join(words)}); inputs are given when it is called"

    def __call__(self, *inputs: Any) -> Any:
        attributes = {name: self.attrs[name] for name in self.DEFAULTS}
        return self._recomputed(lambda: type(self).FUNCTION(*inputs, **attributes))


def operator(name: str, function: Callable[..., Any], attributes: str = "", **defaults: Any) -> type[Operator]:
    """The class of an operator: objects hold the attributes, calling one runs the function.

    `attributes` are those arguments of the function that an object holds, in their order; their defaults are the
    function's, but for those given here.
    """
    formal = signature(function).parameters
    held = [formal[each].replace(default=defaults.get(each, formal[each].default)) for each in attributes.split()]
    made = type(
        name,
        (Operator,),
        {
            "NAME": name,
            "DEFAULTS": {each.name: each.default for each in held},
            "FUNCTION": staticmethod(function),
            "__doc__": function.__doc__,
            "__module__": "msc.ops",
            "__signature__": Signature([each.replace(kind=Parameter.POSITIONAL_OR_KEYWORD) for each in held]),
        },
    )
    REGISTERED.setdefault(name, made)
    return made
