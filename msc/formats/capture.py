"""Cells and functions of Python as models: captured whole, with names, nested results, states.

A Cell's parameters are the weights of the model. Those that `construct` assigns are states: arguments behind the
inputs, which a call updates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, SSAValue

from msc.dialects.arrays import Array
from msc.dialects.ms.attributes import MS_NAME
from msc.dialects.ms.values import known
from msc.formats.user_code import UserCode
from msc.frontend.execution import program_of
from msc.frontend.modes import INTERPRETER, Wishes
from msc.frontend.parameter import Parameter
from msc.frontend.reader.capture import Arguments, Captured
from msc.frontend.reader.entry import Unread, read_call, taken_apart
from msc.frontend.reader.graph import Graph
from msc.frontend.reader.journal import TensorContent
from msc.frontend.reader.structures import Entries, Items, Leaf, SameObject, Template
from msc.frontend.tensor import Placeholder, Tensor
from msc.importers.imported import Imported
from msc.ir.donation import UPDATES
from msc.ir.entry import STRUCTURE, find_entry
from msc.ir.locations import format_module
from msc.ir.storage_order import ANY, LAYOUT
from msc.nn.cell import Cell
from msc.runtime.structures import Structure, structure_text
from msc.support.argument_values import refuse
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.naming import identifier
from msc.support.other_frameworks import framework_of, is_tensor
from msc.support.wording import counted


def capture(target: Any, examples: Sequence[Any], name: str | None = None, *, any_layout: bool = False) -> Imported:
    """The model that a Cell or a function is on arguments of the examples' types and structure.

    With `any_layout` the axes of parameters that it updates may lie in any order.

    Raises MSC0008 for examples that are not as many as the arguments, MSC084x for what cannot be captured whole, what
    user code raises, and MSC0850 for what a compiled model cannot do to the world around it.
    """
    _check_examples(target, examples)
    arguments = taken_apart(tuple(map(_on_its_own, examples)), {})
    with UserCode("MSC0854", f"{_name_of(target)} raises an error"):
        found = read_call(target, arguments, _interpreted, True, set())
    if isinstance(found, Unread):
        raise MscError(found.diagnostic)
    if not isinstance(found, Captured):
        raise MscError(Diagnostic("MSC0850", f"{_name_of(target)} cannot be compiled whole: Python runs a part of it"))
    return _Capture(target, arguments, found, name).model(any_layout)


def text_of(target: Any, examples: Sequence[Any]) -> str:
    """The graph-stage text of a Cell or function."""
    return format_module(capture(target, examples).module)


def _interpreted(graph: Graph, outputs: Sequence[SSAValue], inputs: Sequence[Array]) -> Sequence[Array]:
    """What stood before an error of the user's code is run, as the reader asks, by the interpreter."""
    return program_of(graph.finish(outputs), graph.weights(), Wishes(INTERPRETER))(inputs)


class _Capture:
    """What was read of a call, on its way to a module."""

    def __init__(self, target: Any, arguments: Arguments, captured: Captured, name: str | None) -> None:
        self._target, self._arguments, self._captured = target, arguments, captured
        self._name = name or _name_of(target)
        self._graph = captured.graph
        wanted = {leaf for template in _given_back(captured) for leaf in _leaves_of(template)}
        kept = [leaf for leaf in range(len(captured.outputs)) if leaf in wanted]
        self._numbers = {leaf: number for number, leaf in enumerate(kept)}
        self._outputs = [captured.outputs[leaf] for leaf in kept]
        self._given = len(arguments.leaves)
        self._states: dict[int, Parameter] = {}
        self._updates: dict[int, int] = {}

    def model(self, any_layout: bool) -> Imported:
        """The module with its signature; the order of the axes of states is open with `any_layout`."""
        for effect in self._captured.effects:
            if effect.slot is not None:
                self._note_state(effect.slot, effect.value)
        structure = self._structure(self._captured.result)
        module = self._graph.finish(self._outputs)
        module.sym_name = StringAttr(identifier(self._name, "model").replace(".", "_"))
        function = find_entry(module)
        assert function is not None
        names = self._input_names(len(function.args))
        inputs: list[dict[str, Attribute]] = [{MS_NAME: StringAttr(name)} for name in names]
        for state in self._states if any_layout else ():
            inputs[state][LAYOUT] = ANY
        function.arg_attrs = ArrayAttr(map(_attributes, inputs))
        function.res_attrs = ArrayAttr(_attributes(self._result(k)) for k in range(len(self._outputs)))
        every = list(range(len(self._outputs)))
        if structure != (0 if len(every) == 1 else {"tuple": every}):
            function.attributes[STRUCTURE] = StringAttr(structure_text(structure))
        return Imported(module, self._graph.weights(), has_lines=True)

    def _result(self, number: int) -> dict[str, Attribute]:
        updated = self._updates.get(number)
        if updated is None:
            return {MS_NAME: StringAttr("output" if len(self._outputs) == 1 else f"output{number}")}
        return {MS_NAME: StringAttr(self._states[updated].name), UPDATES: IntegerAttr(updated, i64)}

    def _note_state(self, slot: object, value: Template) -> None:
        """A parameter that the graph assigns is an argument, which a result updates. Raises MSC0850."""
        if not isinstance(slot, TensorContent) or not isinstance(slot.holder, Parameter) or not isinstance(value, Leaf):
            what = f"argument {slot}" if isinstance(slot, int) else f"'{getattr(slot, 'name', slot)}'"
            message = f"{self._name} changes {what}, which a compiled model cannot: it changes parameters alone"
            raise MscError(Diagnostic("MSC0850", message, help="return the new value instead"))
        position = self._argument_of(slot.holder)
        self._states[position] = slot.holder
        self._updates[self._output(value.index)] = position

    def _argument_of(self, parameter: Parameter) -> int:
        """The position of the argument that a parameter is; a new one where nothing reads it."""
        arrays = self._arguments.arrays()
        for position, given in enumerate(self._graph.inputs):
            if given.value(arrays) is parameter.content:
                return position
        content = parameter.content
        assert isinstance(content, np.ndarray)
        content = cast(Array, content)
        self._graph.add_input(known(content).type, lambda _: content)
        return len(self._graph.inputs) - 1

    def _output(self, leaf: int) -> int:
        """The number of the result that a leaf is: leaves behind the outputs are arguments, given back as they are."""
        count = len(self._captured.outputs)
        if leaf < count:
            return self._numbers[leaf]
        self._outputs.append(self._graph.inputs[leaf - count].symbol.ssa)
        return len(self._outputs) - 1

    def _structure(self, template: Template) -> Structure:
        """How the results are nested. Raises MSC0850 for a result that an artifact cannot give."""
        match template:
            case Leaf():
                return self._output(template.index)
            case SameObject(value=bool() | int() | float() | str() | None):
                return {"constant": template.value}
            case SameObject(value=tuple()):
                return {"tuple": [self._structure(SameObject(v)) for v in template.value]}
            case Items():
                return self._items(template)
            case Entries() if all(isinstance(key, str) for key in template.keys):
                pairs = zip(template.keys, template.items, strict=True)
                return {"dict": {key: self._structure(item) for key, item in pairs}}
            case _:
                kind = type(template.value if isinstance(template, SameObject) else template.like).__name__
                message = f"{self._name} returns a {kind}, which a compiled model cannot give"
                help_ = "return tensors, Python numbers and strings in tuples, lists and dicts with words as keys"
                raise MscError(Diagnostic("MSC0850", message, help=help_))

    def _items(self, template: Items) -> Structure:
        items = [self._structure(item) for item in template.items]
        fields: Sequence[str] | None = getattr(template.kind, "_fields", None)
        if fields is not None:
            return {"namedtuple": [template.kind.__name__, list(fields), items]}
        return {"list" if template.kind is list else "tuple": items}

    def _input_names(self, count: int) -> list[str]:
        """The parameters of `construct`, with the place inside for what is nested; parameters by their own names."""
        names = list(self._leaf_names())
        for position in range(len(names), count):
            state = self._states.get(position)
            names.append(f"state{position}" if state is None else state.name)
        return names

    def _leaf_names(self) -> Iterator[str]:
        """A name for each leaf of `(args, kwargs)`."""
        template = self._arguments.template
        arguments = template.items[0] if isinstance(template, Items) else template
        if isinstance(arguments, Items):
            for item, name in zip(arguments.items, input_names(self._target, len(arguments.items)), strict=True):
                yield from _names_in(item, name)


def _attributes(given: Mapping[str, Attribute]) -> DictionaryAttr:
    return DictionaryAttr(dict(given))


def _name_of(target: Any) -> str:
    return getattr(target, "__name__", type(target).__name__)


def input_names(target: Any, count: int) -> list[str]:
    """What the first arguments of a Cell or function are called."""
    names = _parameter_names(target)
    return [names[k] if k < len(names) else f"x{k}" for k in range(count)]


def open_example(name: str) -> Diagnostic:
    """What to say of an open size where a model of known sizes is written."""
    help_ = "give an example with all sizes, say Tensor(np.zeros((1, 4), np.float32))"
    return Diagnostic("MSC0207", f"dimension '{name}' of an input is open", help=help_)


def _check_examples(target: Any, examples: Sequence[Any]) -> None:
    """Raises MSC0008 for no Cell or function and for examples that it does not take, MSC0207 for open sizes."""
    if not callable(target) or isinstance(target, type) or framework_of(target) is not None:
        refuse("net", target, "a Cell or a function")
    for k, example in enumerate(examples):
        if isinstance(example, Tensor) and isinstance(example.content, Placeholder):
            axis = example.shape.index(-1)
            raise MscError(open_example(f"{input_names(target, k + 1)[k]}.{axis}"))
    signature = _signature(target)
    if signature is None or (isinstance(target, Cell) and target.has_hooks()):
        return
    try:
        signature.bind(*examples)
    except TypeError as error:
        takes = ", ".join(name for name in signature.parameters) or "no arguments"
        message = f"{_name_of(target)} takes {takes}, and {counted(len(examples), 'example')} came with it"
        help_ = "give an example of each argument, as in msc.compile(net, x); only its type and shape count"
        raise MscError(Diagnostic("MSC0008", message, help=help_)) from error


_SEQUENCES: Mapping[Any, Callable[[Iterable[Any]], Any]] = {list: list, tuple: tuple}


def _on_its_own(example: Any) -> Any:
    """An example that is no other's object: only types count of examples, so that one may stand for two arguments."""
    kind: Any = cast(object, example).__class__
    fields: object = getattr(kind, "_fields", None)
    if is_tensor(example):
        return Tensor(example)
    if isinstance(example, Tensor) and not isinstance(example, Parameter):
        return Tensor.of(example.content)
    if issubclass(kind, np.ndarray):
        return example.view()
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](map(_on_its_own, example))
    if kind is dict:
        return {key: _on_its_own(value) for key, value in example.items()}
    return example if fields is None else kind(*map(_on_its_own, example))


def _signature(target: Any) -> inspect.Signature | None:
    """Of a function, or of the `construct` of a Cell."""
    construct = getattr(target, "construct", target)
    try:
        return inspect.signature(getattr(construct, "__msc_function__", construct))
    except (TypeError, ValueError):
        return None


def _parameter_names(target: Any) -> list[str]:
    """What a function, or the `construct` of a Cell, calls its arguments."""
    signature = _signature(target)
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in signature.parameters.values() if p.kind in plain] if signature is not None else []


def _given_back(captured: Captured) -> Iterator[Template]:
    """What a model gives back: the result and what it assigns; not what is printed, which a model does not."""
    yield captured.result
    yield from (effect.value for effect in captured.effects if effect.slot is not None)


def _leaves_of(template: Template) -> Iterator[int]:
    match template:
        case Leaf():
            yield template.index
        case SameObject():
            return
        case _:
            for item in template.items:
                yield from _leaves_of(item)


def _names_in(template: Template, name: str) -> Iterator[str]:
    match template:
        case Leaf():
            yield name
        case SameObject():
            return
        case Entries():
            for key, item in zip(template.keys, template.items, strict=True):
                yield from _names_in(item, f"{name}.{key}")
        case _:
            for position, item in enumerate(template.items):
                yield from _names_in(item, f"{name}.{position}")
