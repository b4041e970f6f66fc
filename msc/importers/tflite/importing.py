"""From a file to a module: the entry function, its inputs and outputs, and the operators in order."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, ModuleOp, StringAttr, f64, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region
from xdsl.utils.exceptions import VerifyException

from msc.dialects.arrays import dtype_text
from msc.dialects.ms.attributes import MS_NAME, MS_SCALE, MS_ZERO
from msc.dialects.ms.shapes import tensor_type
from msc.importers.failures import failure, shown
from msc.importers.imported import Imported
from msc.importers.tflite.model import OperatorRecord, Subgraph, TensorRecord, read_file, read_model
from msc.importers.tflite.node import TfliteBuilder, TfliteNode, TfliteValue, operator_label
from msc.importers.tflite.registry import importer
from msc.ir.entry import ENTRY
from msc.ir.errors import code_of, help_of
from msc.ir.locations import file_location
from msc.support.diagnostics import Diagnostic, Location, MscError, near_match
from msc.support.naming import identifier, value_hint

_LISTED = 20

REASONS: Mapping[str, str] = {
    **dict.fromkeys(
        ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "WHERE", "UNIQUE"), "its size depends on data"
    ),
    **dict.fromkeys(("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL"), "its numbers are no one's contract"),
    **dict.fromkeys(("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"), "it works on strings"),
    **dict.fromkeys(("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"), "variables are not imported"),
}
"""Why operators are left out on purpose."""


def import_model(path: Path) -> Imported:
    """The module and the weights of a `.tflite` file. Raises MSC07xx, and MSC02xx with the operator that is wrong."""
    return build_module(read_file(path), str(path))


def import_bytes(data: bytes, name: str = "model.tflite") -> Imported:
    """As `import_model`, of a model in memory."""
    return build_module(read_model(data, name), name)


class _Faults:
    """A context that names the operator in the errors of the operations it becomes.

    A damaged model asks for things that no importer foresees (an axis of 10^18, a table of a terabyte): NumPy then
    raises exceptions of any kind, which are the model's mistakes and not ours.
    """

    def __init__(self, label: str, place: Location) -> None:
        self._label, self._place = label, place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, VerifyException):
            message = f"{self._label}: {error}"
            raise MscError(Diagnostic(code_of(error), message, self._place, help=help_of(error))) from error
        if isinstance(error, struct.error) or (isinstance(error, TypeError) and "for type uint32" in str(error)):
            message = f"{self._label} is damaged: an offset of its options leads out of the file"
            raise MscError(Diagnostic("MSC0702", message, self._place)) from error
        if isinstance(error, Exception) and not isinstance(error, MscError):
            reason = str(error).partition("\n")[0][:200]
            message = f"{self._label} cannot be imported: {type(error).__name__}{': ' if reason else ''}{reason}"
            raise MscError(Diagnostic("MSC0790", message, self._place)) from error


def build_module(graphs: Sequence[Subgraph], name: str) -> Imported:
    """The module of a file's main subgraph, its first one. Raises MSC0702 to MSC0714, MSC0730, MSC0790."""
    if not graphs:
        raise failure("MSC0702", f"'{name}' holds no graph")
    graph = graphs[0]
    _check_supported(graph)
    entry = Block()
    builder = TfliteBuilder(entry)
    scope = {index: _argument(graph, index, entry) for index in dict.fromkeys(graph.inputs)}
    for record in graph.operators:
        _import(record, graph, scope, builder, name)
    outputs = [_output(graph, index, scope) for index in graph.outputs]
    results = [builder.ssa(value) for value in outputs]
    entry.add_op(ReturnOp(*results))
    arguments = list(dict.fromkeys(graph.inputs))
    given = [_named(n, graph.tensors[k]) for n, k in zip(_names(graph, arguments), arguments, strict=True)]
    names = _names(graph, graph.outputs)
    types = [a.type for a in entry.args], [r.type for r in results]
    attributes = (
        ArrayAttr(given),
        ArrayAttr([_named(n, graph.tensors[k]) for n, k in zip(names, graph.outputs, strict=True)]),
    )
    function = FuncOp(ENTRY, types, Region(entry), arg_attrs=attributes[0], res_attrs=attributes[1])
    module = ModuleOp([*builder.declarations(), function], sym_name=StringAttr(_stem(name)))
    return Imported(module, builder.parameters, tuple(names))


def _check_supported(graph: Subgraph) -> None:
    """Raise one MSC0710 that lists every operator without importer: where it is first, how often, and what to do."""
    missing: Counter[str] = Counter()
    first: dict[str, OperatorRecord] = {}
    for record in graph.operators:
        if record.is_custom or importer.get(record.name) is None:
            missing[record.name] += 1
            first.setdefault(record.name, record)
    if not missing:
        return
    lines = [_line(first[name], count) for name, count in missing.most_common(_LISTED)]
    if len(missing) > _LISTED:
        lines.append(f"and {len(missing) - _LISTED} more operators")
    total = sum(missing.values())
    message = f"msc does not import {len(missing)} of the model's operators ({total} of {len(graph.operators)} nodes)"
    help_ = "build the network of operators that `docs/tflite.md` lists, or cut the model in front of this one"
    raise MscError(Diagnostic("MSC0710", message, help=help_, notes=tuple(lines)))


def _line(record: OperatorRecord, count: int) -> str:
    times = "once" if count == 1 else f"{count} times"
    text = f"{shown(record.name)}, used {times}, first as operator {record.index}"
    if record.is_custom:
        return f"{text}: a custom operator, whose meaning is not in the file"
    near = near_match(record.name[:100], importer.all())
    reason = REASONS.get(record.name)
    return f"{text}: {reason}" if reason else text + (f"; did you mean '{near}'?" if near else "")


def _import(
    record: OperatorRecord, graph: Subgraph, scope: dict[int, TfliteValue], builder: TfliteBuilder, file: str
) -> None:
    place = Location(f"{file} ({operator_label(record)})", record.index + 1, 1)
    inputs = [None if k < 0 else _input(graph, k, scope, record, place) for k in record.inputs]
    outputs = [graph.tensors[k] for k in record.outputs]
    import_ = importer.get(record.name)
    assert import_ is not None
    builder.location = file_location(place.file, place.line, place.column)
    with _Faults(operator_label(record), place):
        result = import_(TfliteNode(record, inputs, outputs, builder, place))
    results = result if isinstance(result, Sequence) else (result,)
    if len(results) < len(outputs):
        message = f"{operator_label(record)} has {len(outputs)} outputs, but gives {len(results)}"
        raise failure("MSC0711", message, at=place)
    for index, tensor, value in zip(record.outputs, outputs, results, strict=False):
        scope[index] = _declared(tensor, value, record, place)


def _declared(tensor: TensorRecord, value: TfliteValue, record: OperatorRecord, place: Location) -> TfliteValue:
    """A result under the name and the quantisation that the file gives it. Raises MSC0711 where the types differ."""
    wanted = None if tensor.dtype is None else dtype_text(tensor.dtype)
    same_shape = tensor.is_open or not tensor.shape or tensor.shape == value.shape
    if wanted != value.dtype or not same_shape:
        shape = "".join(f"{n}x" for n in tensor.shape)
        message = f"{operator_label(record)} gives a {value.type}, but the file declares {shape}{wanted or tensor.type}"
        raise failure("MSC0711", message, at=place)
    if value.ssa is not None and value.ssa.name_hint is None:
        value.ssa.name_hint = value_hint(tensor.name)
    return TfliteValue(
        value.type, value.array, value.ssa, value.depends, tensor.name or value.label, tensor.quantisation, value.first
    )


def _argument(graph: Subgraph, index: int, entry: Block) -> TfliteValue:
    tensor = graph.tensors[index]
    dtype = _dtype(tensor, "input")
    type_ = tensor_type(dtype, tensor.shape)
    argument = entry.insert_arg(type_, len(entry.args))
    argument.name_hint = value_hint(tensor.name)
    return TfliteValue(
        type_, ssa=argument, depends=frozenset({tensor.name}), label=tensor.name, quantisation=tensor.quantisation
    )


def _dtype(tensor: TensorRecord, what: str) -> str:
    if tensor.dtype is None:
        raise failure(
            "MSC0704", f"{what} '{shown(tensor.name)}' is of type {tensor.type}, which msc does not compute on"
        )
    return dtype_text(tensor.dtype)


def _input(
    graph: Subgraph, index: int, scope: dict[int, TfliteValue], record: OperatorRecord, place: Location
) -> TfliteValue:
    if index not in scope:
        value = _constant(graph.tensors[index])
        if value is None:
            message = f"{operator_label(record)} uses tensor {index} '{shown(graph.tensors[index].name)}', which "
            later = any(index in other.outputs for other in graph.operators[record.index :])
            message += "is computed later: the graph has a cycle or is not sorted" if later else "nothing computes"
            raise failure("MSC0705", message, at=place)
        scope[index] = value
    return scope[index]


def _constant(tensor: TensorRecord) -> TfliteValue | None:
    """The value of a constant; a variable begins with its zero, whatever that is of reals."""
    array = tensor.array
    if array is None and tensor.dtype is not None:
        if tensor.is_variable:
            zero = 0 if tensor.quantisation is None else int(tensor.quantisation.zeros[0])
            array = np.broadcast_to(np.array(zero).astype(tensor.dtype), tensor.shape)
        elif math.prod(tensor.shape) == 0:
            array = np.zeros(tensor.shape, tensor.dtype)
    if array is None:
        return None
    type_ = tensor_type(dtype_text(array.dtype), array.shape)
    return TfliteValue(type_, array, label=tensor.name, quantisation=tensor.quantisation)


def _output(graph: Subgraph, index: int, scope: dict[int, TfliteValue]) -> TfliteValue:
    tensor = graph.tensors[index]
    value = scope.get(index) or _constant(tensor)
    if value is None:
        raise failure("MSC0705", f"output '{shown(tensor.name)}' is computed by no operator")
    return value


def _names(graph: Subgraph, indices: Sequence[int]) -> list[str]:
    """Names of inputs or outputs, each once: the file's need not differ."""
    taken = set[str]()
    names: list[str] = []
    for index in indices:
        base = name = graph.tensors[index].name or f"tensor{index}"
        number = 1
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name)
        names.append(name)
    return names


def _named(name: str, tensor: TensorRecord) -> DictionaryAttr:
    """The attributes of an argument or a result: its name, and what its integers stand for."""
    found, attributes = tensor.quantisation, dict[str, Attribute]({MS_NAME: StringAttr(name)})
    if found is not None and found.scales.size == 1 and tensor.type != "FLOAT32":
        attributes[MS_SCALE] = FloatAttr(float(found.scales[0]), f64)
        attributes[MS_ZERO] = IntegerAttr(int(found.zeros[0]), i64)
    return DictionaryAttr(attributes)


def _stem(file: str) -> str:
    return identifier(file.rpartition("/")[2].rpartition(".")[0] or file, "model").replace(".", "_")
