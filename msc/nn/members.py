"""What a Cell has beside its layers: buffers, its state as a dictionary, flags, and requests about compilation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from msc.frontend.dtypes import DType, as_dtype
from msc.frontend.errors import ApiAttributeError, ApiTypeError, ApiValueError
from msc.frontend.modes import GRAPH_MODE, TOLD_INPUTS, set_context
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.support.wording import a

if TYPE_CHECKING:
    from msc.nn.cell import Cell


class LoadedKeys(NamedTuple):
    """The names that a state lacked, and those that a network lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class CellMembers:
    """The part of `Cell` that is no computation."""

    def _self(self) -> Cell:
        return cast("Cell", self)

    def _made(self, name: str, kind: Callable[[], Any]) -> Any:
        return self.__dict__.setdefault(name, kind())

    # Buffers: tensors that belong to the state and are not trained.

    def register_buffer(self, name: str, tensor: object, persistent: bool = True) -> None:
        """Make a tensor an attribute that `state_dict` has, unless it is not `persistent`. Raises MSC0822."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ApiTypeError("MSC0822", f"register_buffer takes a Tensor, not {a(type(tensor).__name__)}")
        if not name or "." in name or (hasattr(self, name) and name not in self._made("_buffers", dict)):
            raise ApiValueError("MSC0822", f"'{name}' is no name of a buffer: it is empty, taken or has a dot")
        self._made("_buffers", dict)[name] = persistent
        setattr(self, name, tensor)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their places in this cell: `norm.scale`."""
        seen: set[int] = set()
        for name, value, _ in self._buffers_in(prefix, recurse):
            if not remove_duplicate or id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a place. Raises MSC0821."""
        found = dict(self.named_buffers())
        if target not in found:
            raise ApiAttributeError("MSC0821", f"there is no buffer '{target}'")
        return found[target]

    def _buffers_in(self, prefix: str, recurse: bool) -> Iterator[tuple[str, Tensor, bool]]:
        cells = self._self().cells_and_names(prefix) if recurse else [(prefix, self._self())]
        for place, cell in cells:
            for name, persistent in vars(cell).get("_buffers", {}).items():
                value = getattr(cell, name)
                if value is not None:
                    yield (f"{place}.{name}" if place else name), value, persistent

    # The state as a dictionary.

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by their places, as an ordered dictionary; the tensors themselves."""
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        found: Any = given.get("destination", destination)
        found, prefix = OrderedDict[str, Any]() if found is None else found, given.get("prefix", prefix)
        keep_vars = given.get("keep_vars", keep_vars)
        for place, cell in self._self().cells_and_names():
            start = f"{prefix}{place}." if place else prefix
            for hook in vars(cell).get("_before_state", ()):
                hook(cell, start, keep_vars)
            for name, parameter in vars(cell)["_params"].items():
                found[start + name] = parameter
            for name, persistent in vars(cell).get("_buffers", {}).items():
                if persistent and getattr(cell, name) is not None:
                    found[start + name] = getattr(cell, name)
            if type(cell).get_extra_state is not CellMembers.get_extra_state:
                found[f"{start}_extra_state"] = cell.get_extra_state()
            for hook in vars(cell).get("_after_state", ()):
                hook(cell, found, start, {})
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> LoadedKeys:
        """Give parameters and buffers the values of a state. Raises MSC0821 for names that differ, if `strict`."""
        own: dict[str, Any] = self.state_dict()
        errors: list[str] = []
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        for place, cell in self._self().cells_and_names():
            start = f"{place}." if place else ""
            for hook in vars(cell).get("_before_load", ()):
                hook(cell, state_dict, start, {}, strict, missing, unexpected, errors)
        if strict and (missing or unexpected or errors):
            parts = [f"{kind}: {', '.join(names)}" for kind, names in _kinds(missing, unexpected, errors) if names]
            name = type(self).__name__
            raise ApiAttributeError("MSC0821", f"the state is not that of {name}: {'; '.join(parts)}")
        for name, value in state_dict.items():
            if name in own:
                self._load(name, own[name], value)
        keys = LoadedKeys(missing, unexpected)
        for _, cell in self._self().cells_and_names():
            for hook in vars(cell).get("_after_load", ()):
                hook(cell, keys)
        return keys

    def _load(self, name: str, current: Any, value: Any) -> None:
        if name.rpartition(".")[2] == "_extra_state":
            place = name.rpartition(".")[0]
            (self._self().get_sub_cell(place) if place else self).set_extra_state(value)
        elif isinstance(current, Parameter):
            current.set_data(value)
        else:
            current.assign_value(value if isinstance(value, Tensor) else Tensor(value, current.dtype))

    def get_extra_state(self) -> Any:
        """What a cell adds to its state, for a subclass to define."""
        raise ApiAttributeError("MSC0821", f"{type(self).__name__} has no extra state", help="define get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` gave, for a subclass to define."""
        del state
        raise ApiAttributeError("MSC0821", f"{type(self).__name__} has no extra state", help="define set_extra_state")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(cell, prefix, keep_vars)` before `state_dict` reads the cell."""
        self._made("_before_state", list).append(hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(cell, state_dict, prefix, local_metadata)` after `state_dict` has read the cell."""
        self._made("_after_state", list).append(hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(cell, state, prefix, metadata, strict, missing, unexpected, errors)` before a state is loaded."""
        self._made("_before_load", list).append(hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook(cell, keys)` after a state was loaded."""
        self._made("_after_load", list).append(hook)

    # Parameters.

    def to(self, *args: Any, **keywords: Any) -> Self:
        """Convert the parameters and buffers of floats to another float type; the device is the CPU.

        Raises MSC0887 for another device, MSC0801 for an element type that there is not.
        """
        for value in (*args, *keywords.values()):
            if isinstance(value, Tensor | DType):
                wanted = value.dtype if isinstance(value, Tensor) else as_dtype(value)
                for parameter in self._self().get_parameters():
                    if parameter.dtype.is_float:
                        parameter.set_dtype(wanted)
                for cell, name in _buffers_of(self._self()):
                    if getattr(cell, name).dtype.is_float:
                        setattr(cell, name, getattr(cell, name).astype(wanted))
            elif isinstance(value, str) and value.lower() != "cpu":
                raise ApiValueError("MSC0887", f"Cell.to: '{value}' is not there", help="networks are on the CPU")
        return self

    def check_names(self) -> None:
        """Raise MSC0822 if two parameters have one name."""
        names = [parameter.name for parameter in self._self().get_parameters()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            advice = "update_parameters_name gives them others"
            raise ApiValueError("MSC0822", f"two parameters are named '{twice[0]}'", help=advice)

    def check_names_and_refresh_name(self) -> None:
        """As `check_names`; names are always those of places."""
        self.check_names()

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """The parameters by name, which ranks would send to each other."""
        return OrderedDict(self._self().parameters_dict(recurse))

    @property
    def parameter_layout_dict(self) -> dict[str, Any]:
        """Nothing: parameters of one process are whole."""
        return {}

    # Flags and requests about compilation.

    def add_flags(self, **flags: Any) -> Self:
        """Set attributes, which `get_flags` gives, too."""
        self._made("_flags", dict).update(flags)
        for name, value in flags.items():
            setattr(self, name, value)
        return self

    def add_flags_recursive(self, **flags: Any) -> Self:
        """`add_flags` of this cell and all in it."""
        for _, cell in self._self().cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """The attributes that `add_flags` has set."""
        return dict(self.__dict__.get("_flags", {}))

    def cast_inputs(self, inputs: Any, dst_type: Any) -> tuple[Any, ...]:
        """Tensors of floats in another element type."""
        wanted = as_dtype(dst_type)
        return tuple(x.astype(wanted) if isinstance(x, Tensor) and x.dtype.is_float else x for x in inputs)

    def get_inputs(self) -> Any:
        """What `set_inputs` was given; None before."""
        told = self.__dict__.get(TOLD_INPUTS)
        return None if told is None else tuple(map(Tensor.of, told))

    def compile(self, *args: Any, **keywords: Any) -> None:
        """Nothing: graphs are compiled when they are called first. `msc.compile(net, x)` makes a model of a cell."""

    def compile_and_run(self, *args: Any, **keywords: Any) -> Any:
        """What a call in graph mode gives."""
        with set_context(mode=GRAPH_MODE):
            return self._self()(*args, **keywords)

    def set_jit_config(self, jit_config: Any) -> None:
        """Keep options of compilation, which change no result."""
        self.__dict__["jit_config_dict"] = dict(getattr(jit_config, "jit_config_dict", jit_config) or {})

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Self:
        """The cell itself: there is nothing to send that could be joined."""
        del fusion_type, recurse
        return self

    def set_broadcast_flag(self, mode: bool = True) -> Self:
        """The cell itself: ranks begin with equal parameters."""
        del mode
        return self

    def set_data_parallel(self) -> None:
        """Nothing: operators without a strategy work on the rows of their rank."""

    def update_cell_type(self, cell_type: str) -> None:
        """Keep the kind of a cell that a program gives it."""
        self.__dict__["cell_type"] = cell_type


def _kinds(missing: list[str], unexpected: list[str], errors: list[str]) -> tuple[tuple[str, list[str]], ...]:
    return ("missing", missing), ("unexpected", unexpected), ("wrong", errors)


def _buffers_of(cell: Cell) -> list[tuple[Cell, str]]:
    cells = [each for _, each in cell.cells_and_names()]
    return [(c, n) for c in cells for n in vars(c).get("_buffers", {}) if getattr(c, n) is not None]
