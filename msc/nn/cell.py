"""`Cell`: parameters, sub-cells and a `construct` that says what is computed; the base of all layers and models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, TypeVar, cast

from msc.frontend import settings
from msc.frontend.boundary import public
from msc.frontend.capture import INSTALLED
from msc.frontend.changes import Changes, CountedDict, CountedType
from msc.frontend.dtypes import as_dtype
from msc.frontend.errors import ApiAttributeError, ApiTypeError, ApiValueError
from msc.frontend.modes import TOLD_INPUTS, Hooks, in_graph_mode
from msc.frontend.parallel import all_laid, checked_strategy, plan_parameters
from msc.frontend.parameter import UNNAMED, Parameter, ParameterTuple
from msc.frontend.precision import ComputePrecision, computing_in, given
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.nn.hooks import CellHooks, Handle, called
from msc.nn.members import CellMembers
from msc.support.diagnostics import did_you_mean
from msc.support.other_frameworks import advice_for
from msc.support.torch_names import hint
from msc.support.wording import a

__all__ = ["Cell"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_CAPTURE = "msc.formats.capture"
"""What captures a cell whole: the driver stands above the cells, and is found by name as passes are."""


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class HasConstruct(Protocol[P, R_co]):
    """What a Cell is to a checker of types: a call takes and returns what `construct` does."""

    def construct(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


def public_call(function: FunctionT) -> FunctionT:
    """The boundary around calls of cells, whose arguments `construct` describes."""
    return public(function, "Cell", _itself)


def _itself(cell: Cell, *_: Any) -> Cell:
    return cell


def public_initialiser(function: FunctionT) -> FunctionT:
    """The boundary around what makes cells that have no `__init__` of their own."""
    return public(function, "Cell")


class Cell(CellMembers, metaclass=CountedType):
    """A part of a network. A subclass assigns parameters and cells to attributes and writes `construct`.

    An attribute's name is the name of the parameter or cell: `conv1.weight` is `weight` of the cell `conv1`.
    """

    pipeline_stage: int | None = None
    """The stage of a pipeline that computes the cell, and the cells in it that say none."""

    MEMBERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """What MindSpore's classes have for subclasses with a `construct` of their own, made when it is asked for."""

    @public_initialiser
    def __init__(self, auto_prefix: object = True, flags: Mapping[str, Any] | None = None) -> None:
        unused("Cell", flags=flags)
        if isinstance(auto_prefix, Tensor):
            name = type(self).__name__
            raise ApiTypeError(
                "MSC0824",
                f"{name} is made with a Tensor; auto_prefix is True or False",
                help=f"make the cell first, then call it: {name}()(x)",
            )
        self.__setstate__(self.__dict__ | {"_cells": CountedDict(), "_params": CountedDict(), "_hooks": CellHooks()})
        self.training = False
        self._precision: ComputePrecision | None = None
        self._recomputes = False
        self.auto_prefix = bool(auto_prefix)
        self.param_prefix = ""
        self.cls_name = type(self).__name__

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """What a new cell, or a copy, has; graph mode is told of whatever changes it."""
        object.__setattr__(self, "__dict__", CountedDict(state))

    def __init_subclass__(cls, **keywords: Any) -> None:
        """The layers of the library tell of wrong arguments in the words of the API."""
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith("msc.") and "__init__" in vars(cls):
            cls.__init__ = public(cls.__init__, cls.__name__)

    # Calling.

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """What the cell computes."""
        own = [n for n in vars(type(self)) if not n.startswith("_")]
        advice = "construct(self, ...) says what a cell computes"
        raise ApiAttributeError(
            "MSC0820",
            f"{type(self).__name__} has no method 'construct'",
            help=f"{advice}: rename forward"
            if "forward" in own
            else did_you_mean("construct", own) or f"define it: {advice}",
        )

    @public_call
    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if "_cells" not in self.__dict__:
            raise _not_initialised(self)
        if Hooks.call_cell is not None and (INSTALLED.builder is not None or in_graph_mode()):
            return Hooks.call_cell(self, args, kwargs)
        return self.run_construct(args, kwargs)

    if TYPE_CHECKING:

        def __call__(self: HasConstruct[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    else:
        __call__ = _call

    def run_construct(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `construct` in Python, with the hooks around it."""

        def construct(*inputs: Any) -> Any:
            with computing_in(self._precision):
                return given(self._precision, self.construct(*inputs, **kwargs))

        hooks: CellHooks = self.__dict__["_hooks"]
        return hooks.run(self, construct, args, called) if hooks else construct(*args)

    def run_hooked(self, construct: Callable[..., Any], args: tuple[Any, ...], call: Callable[..., Any]) -> Any:
        """Run `construct` with the hooks around it, each of which `call(hook, args, kwargs)` calls."""
        return self._own_hooks().run(self, construct, args, call)

    def what_runs(self) -> tuple[Any, ...]:
        """What a call runs: `construct` and the hooks, for graph mode, which compares it between calls."""
        return (type(self), self.construct, *self._own_hooks().functions())

    def what_it_has(self) -> tuple[Any, ...]:
        """All attributes, cells and parameters, and whether those are trained, for graph mode as well."""
        parameters = self._params.values()
        trained = [p.requires_grad for p in parameters]
        names = [p.name for p in parameters]
        return (
            type(self),
            *self.__dict__.values(),
            *self._cells,
            *self.cells(),
            *self._params,
            *parameters,
            *trained,
            *names,
        )

    def has_hooks(self) -> bool:
        """Whether hooks stand around `construct`. Raises MSC0823 for a cell that was not initialised."""
        return bool(self._own_hooks())

    def _own_hooks(self) -> CellHooks:
        if "_cells" not in self.__dict__:
            raise _not_initialised(self)
        return self.__dict__["_hooks"]

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(cell, inputs)` before `construct`; what it returns, if anything, are the inputs instead."""
        return Handle(self._own_hooks().before, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(cell, inputs, output)` after `construct`; what it returns, if anything, is the output instead."""
        return Handle(self._own_hooks().after, hook)

    def register_backward_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(cell, grad_output)` where gradients of the outputs arrive; what it returns is them instead."""
        return Handle(self._own_hooks().output_gradients, hook)

    def register_backward_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(cell, grad_input, grad_output)` with gradients, as tuples; it may return other `grad_input`."""
        return Handle(self._own_hooks().gradients, hook)

    # Attributes.

    def __setattr__(self, name: str, value: Any) -> None:
        Changes.count += 1
        if isinstance(value, Parameter):
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            self.insert_child_to_cell(name, value)
        elif isinstance(value, ParameterTuple):
            self._insert_tuple(name, value)
        elif value is not None and name in self.__dict__.get("_params", ()):
            self._params[name].set_data(value)
        else:
            self._forget(name)
            object.__setattr__(self, name, value)

    def _insert_tuple(self, name: str, parameters: ParameterTuple) -> None:
        for i, parameter in enumerate(parameters):
            if parameter.name == UNNAMED:
                parameter.name = f"{name}.{i}"
            self._registered()[f"{name}.{i}" if parameter.name in self._params else parameter.name] = parameter
        object.__setattr__(self, name, parameters)

    def _registered(self) -> dict[str, Parameter]:
        if "_params" not in self.__dict__:
            raise _not_initialised(self)
        return self.__dict__["_params"]

    def _forget(self, name: str) -> None:
        self.__dict__.get("_cells", {}).pop(name, None)
        self.__dict__.get("_params", {}).pop(name, None)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_cells" not in own:
            if name.startswith("__"):
                raise AttributeError(name)
            raise _not_initialised(self)
        if name in own["_params"]:
            return own["_params"][name]
        if name in own["_cells"]:
            return own["_cells"][name]
        if name.startswith("__"):
            raise AttributeError(name)
        for kind in type(self).__mro__:
            if name in vars(kind).get("MEMBERS", ()):
                return vars(kind)["MEMBERS"][name](self)
        known = [*own["_params"], *own["_cells"], *(n for n in dir(self) if not n.startswith("_"))]
        advice = import_module("msc.mindspore.refusals").member_advice(type(self), name) or hint(name, known)
        raise ApiAttributeError("MSC0821", f"{type(self).__name__} has no attribute '{name}'", help=advice)

    def __delattr__(self, name: str) -> None:
        Changes.count += 1
        if name in self._cells or name in self._params:
            self._forget(name)
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__.get("_params", ()), *self.__dict__.get("_cells", ())})

    def insert_param_to_cell(self, param_name: str, param: object, check_name_contain_dot: bool = True) -> None:
        """Add a parameter under a name, which becomes its own if it has none. Raises MSC0822."""
        parameters = self._registered()
        if check_name_contain_dot and "." in param_name:
            raise ApiValueError("MSC0822", f"the name of a parameter must not contain a dot: '{param_name}'")
        if param is not None and not isinstance(param, Parameter):
            raise ApiTypeError("MSC0822", f"insert_param_to_cell takes a Parameter, not {a(type(param).__name__)}")
        vars(self).pop(param_name, None)
        self._cells.pop(param_name, None)
        if param is None:
            parameters.pop(param_name, None)
            object.__setattr__(self, param_name, None)
            return
        if param.name == UNNAMED:
            param.name = param_name
        parameters[param_name] = param

    def insert_child_to_cell(self, child_name: str, child_cell: object) -> None:
        """Add a cell under a name, and prefix the names of its parameters with it. Raises MSC0822."""
        if "_cells" not in self.__dict__:
            raise _not_initialised(self)
        if not isinstance(child_cell, Cell):
            given = (
                f"the class {child_cell.__name__}"
                if isinstance(child_cell, type)
                else f"{a(type(child_cell).__name__)}"
            )
            advice = f"write {child_cell.__name__}()" if isinstance(child_cell, type) else advice_for(child_cell)
            raise ApiTypeError(
                "MSC0822", f"{type(self).__name__} takes cells, and '{child_name}' is {given}", help=advice
            )
        if "_cells" not in child_cell.__dict__:
            raise _not_initialised(child_cell)
        vars(self).pop(child_name, None)
        self._params.pop(child_name, None)
        self._cells[child_name] = child_cell
        if self.auto_prefix:
            child_cell.update_parameters_name(f"{child_name}.")

    # Parameters and cells.

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Every parameter once, with its place in this cell: `conv1.weight`."""
        cells = self.cells_and_names(name_prefix) if expand else [(name_prefix, self)]
        seen: set[int] = set()
        for cell_name, cell in cells:
            for name, parameter in cell._params.items():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{cell_name}.{name}" if cell_name else name, parameter

    def cells_and_names(self, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """The cell itself, with the name "", and all cells in it, each once: `features.conv1`."""
        yield from _walk(self, name_prefix, set())

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Every parameter; without those of sub-cells if not `expand`."""
        return (parameter for _, parameter in self.parameters_and_names(expand=expand))

    def parameters_dict(self, recurse: bool = True) -> dict[str, Parameter]:
        """Every parameter by its own name."""
        return {parameter.name: parameter for parameter in self.get_parameters(recurse)}

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters that have `requires_grad`."""
        self._tell_of_plain_cells()
        return [parameter for parameter in self.get_parameters(recurse) if parameter.requires_grad]

    def _tell_of_plain_cells(self) -> None:
        """Tell once of cells in plain lists and dictionaries, whose parameters are none of this cell's."""
        own = [cell for _, cell in self.cells_and_names()]
        known = set(map(id, own))
        for cell in own:
            for name, value in vars(cell).items():
                if any(isinstance(item, Cell) and id(item) not in known for item in _items(value)):
                    kind, made = ("dictionary", "nn.CellDict") if isinstance(value, dict) else ("list", "nn.CellList")
                    message = f"{type(cell).__name__}.{name} is a {kind} of cells, whose parameters are not the cell's"
                    help_ = f"self.{name} = {made}(...) registers them, so that they are trained and saved"
                    settings.tell_once((type(cell).__qualname__, name), "MSC0892", message, help=help_)

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters that do not have `requires_grad`."""
        return [parameter for parameter in self.get_parameters(recurse) if not parameter.requires_grad]

    def cells(self) -> list[Cell]:
        """The cells that are attributes of this one."""
        return list(self._cells.values())

    def name_cells(self) -> dict[str, Cell]:
        """The cells that are attributes of this one, by name."""
        return dict(self._cells)

    def get_sub_cell(self, name: str) -> Cell:
        """The cell at a place like `features.conv1`. Raises MSC0821."""
        found = dict(self.cells_and_names())
        if name not in found:
            raise ApiAttributeError("MSC0821", f"there is no cell '{name}'", help=did_you_mean(name, found))
        return found[name]

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every parameter after its place, behind a prefix."""
        for name, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + name

    def update_cell_prefix(self) -> None:
        """Set `param_prefix` of every cell to its place."""
        for name, cell in self.cells_and_names():
            cell.param_prefix = name

    # State.

    def set_train(self, mode: bool = True) -> Cell:
        """Whether this cell and all in it are trained: then dropout drops and batch norms measure."""
        for _, cell in self.cells_and_names():
            cell.training = mode
        return self

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Say which sizes of the arguments calls decide: `set_inputs(Tensor(shape=(None, 4), dtype=msc.float32))`.

        The first call in graph mode compiles for these open sizes already. A size may be `Symbol(max=64)` in place of
        None. Raises MSC0803 for what describes no argument.
        """
        given = [*inputs, *kwargs.values()]
        for value in given:
            if not isinstance(value, Tensor):  # a number, or a tuple of tensors
                raise ApiTypeError("MSC0803", f"set_inputs takes tensors, not {a(type(value).__name__)}")
        object.__setattr__(self, TOLD_INPUTS, tuple(value.content for value in given))

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """The cell itself, for programs that call this: gradients are taken where they are asked for."""
        unused(f"{type(self).__name__}.set_grad", requires_grad=requires_grad)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Cell:
        """Set `requires_grad` of every parameter."""
        for parameter in self.get_parameters():
            parameter.requires_grad = requires_grad
        return self

    def to_float(self, dst_type: Any) -> Cell:
        """Compute this cell, and those in it, in float16, bfloat16 or float32: operands are converted to it.

        Parameters keep their own type.
        """
        self._precision = ComputePrecision(as_dtype(dst_type))
        return self

    def recompute(
        self,
        *,
        mp_comm_recompute: bool = True,
        parallel_optimizer_comm_recompute: bool = False,
        recompute_slice_activation: bool = False,
    ) -> None:
        """Compute the activations inside this cell again for the backward pass, instead of storing them for it.

        What the cell is called with and what it gives stays stored. The options are about communication between
        devices, of which there is one: they change nothing. Raises MSC0824 for an option that is no bool.
        """
        options = {
            "mp_comm_recompute": mp_comm_recompute,
            "parallel_optimizer_comm_recompute": parallel_optimizer_comm_recompute,
            "recompute_slice_activation": recompute_slice_activation,
        }
        for name, value in options.items():
            if type(value) is not bool:
                raise ApiTypeError("MSC0824", f"recompute: {name} is {a(type(value).__name__)}, not True or False")
        self._recomputes = True

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Cell:
        """The cell, whose inputs and outputs lie as strategies say in a graph that ranks share; the rest follows.

        Raises MSC0887 for strategies that are none, MSC0895 for parameters that are not there, and MSC1109 in a call
        whose tensors they do not cut.
        """
        function = f"{type(self).__name__}.shard"
        for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            checked_strategy(function, name, strategy)
        if parameter_plan:
            plan_parameters(self, parameter_plan)

        def before(_: Cell, inputs: Any) -> Any:
            return all_laid(function, inputs, in_strategy)

        def after(_: Cell, __: Any, output: Any) -> Any:
            return all_laid(function, output, out_strategy)

        self.register_forward_pre_hook(before)
        self.register_forward_hook(after)
        return self

    def apply(self, fn: Callable[[Cell], object]) -> Cell:
        """Call a function on all cells in this one, then on this one."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Each parameter by itself: all have data from the start."""
        unused("Cell.init_parameters_data", auto_parallel_mode=auto_parallel_mode)
        return {parameter: parameter for parameter in self.get_parameters()}

    def to_mir(self, *inputs: Any) -> str:
        """The graph-stage text of this cell for inputs of these types; `msc.export` writes it with its weights."""
        return import_module(_CAPTURE).text_of(self, inputs)

    # Text.

    def summary(self, *inputs: Tensor) -> Any:
        """A table of layers with parameters and, given inputs, shapes and multiply-adds: `print(net.summary(x))`."""
        from msc.nn.summary import summary

        return summary(self, *inputs)

    def extend_repr(self) -> str:
        """What stands between the parentheses in the text of a layer."""
        return ""

    def __repr__(self) -> str:
        extra, name = self.extend_repr(), type(self).__name__
        if not self._cells:
            return f"{name}({extra})"
        lines = [f"  ({key}): {_indented(repr(cell))}\n" for key, cell in self._cells.items()]
        return f"{name}(\n{f'  {extra}{chr(10)}' if extra else ''}{''.join(lines)})"


def _items(value: Any) -> Iterable[Any]:
    """What a plain list, tuple or dictionary holds."""
    if type(value) is dict:
        return cast(dict[Any, Any], value).values()
    return cast(Iterable[Any], value) if type(value) in (list, tuple) else ()


def _walk(cell: Cell, name: str, seen: set[int]) -> Iterator[tuple[str, Cell]]:
    if id(cell) in seen:
        return
    seen.add(id(cell))
    yield name, cell
    for key, child in cell.name_cells().items():
        yield from _walk(child, f"{name}.{key}" if name else key, seen)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _not_initialised(cell: Cell) -> ApiAttributeError:
    name = type(cell).__name__
    return ApiAttributeError(
        "MSC0823",
        f"{name}.__init__ uses the cell before it calls super().__init__()",
        help=f"begin {name}.__init__ with super().__init__()",
    )
