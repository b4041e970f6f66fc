"""Pass `bufferize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.kernel_signature import KernelSignature, kernel_signatures
from msc.analysis.properties import BUFFERS, INLINED, KERNEL_FUNCTIONS, KERNELS, TENSORS, UNPLACED
from msc.dialects.element_types import dtype_name
from msc.dialects.gk import CallKernelOp, KernelOp
from msc.dialects.gk.attributes import GK_FUNCTION
from msc.dialects.ms.attributes import MS_DTYPE, MS_NAME, MS_ROLE
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp, ParameterOp, YieldOp
from msc.dialects.open_sizes import module_sizes, size_attributes
from msc.ir.contracts import Contract
from msc.ir.donation import RESULT, STATE, updates
from msc.ir.entry import entries
from msc.ir.locations import set_location
from msc.ir.typed import element_type, memref_type, static_shape, tensor_type
from msc.lowering.cpu.buffer_types import buffer_type, storage_type
from msc.lowering.cpu.bufferize.buffer_slices import (
    bufferize_extract_slice,
    bufferize_insert_slice,
    indexes_known_place,
    slice_destination,
)
from msc.lowering.cpu.bufferize.bufferize_control_flow import bufferize_for, bufferize_if, bufferize_while, starts
from msc.lowering.cpu.bufferize.bufferizer import Bufferizer
from msc.lowering.cpu.bufferize.destinations import direct_destinations, storage_root, view_root
from msc.lowering.cpu.failure import refuse
from msc.poly.valid_extents import Size
from msc.support.naming import valid_hint


@dataclass(frozen=True)
class Bufferize(ModulePass):
    """Move the entry function from tensors to buffers.

    Before: they take and return tensors; their operations are gk.kernel and gk.call (each with attribute
    `gk.function`: the function that `convert-gk-to-loop` made of it), views, entries, ms.get_parameter, ms.constant,
    func.return, and scf.if/for/while around them. After: each takes a memref for every input and every output
    (`ms.role`; `ms.dtype` where the element type is unsigned, as memrefs are signless), an index for every size
    that calls decide, and returns nothing. A kernel is a func.call on memref.alloc buffers, a view is a
    memref.reinterpret_cast, an entry is a loop.slice, a parameter is a memref.get_global of its symbol, a constant
    is a derived parameter. A result is computed directly in the output's buffer where that is possible, and copied
    into it (memref.copy) where not: an output that is an input or a parameter, or that is returned twice. A result
    that updates an argument (`ms.updates`) has no output: the argument's buffer is written, as a `state`, after the
    last use of what it holds (`ms.result` says which result it is). Where that cannot be, the result is computed
    elsewhere and copied when all else is done. `plan-memory` then gives every buffer its place.
    """

    name = "bufferize"
    contract = Contract(
        requires=(TENSORS, INLINED, KERNELS, KERNEL_FUNCTIONS), ensures=(BUFFERS, UNPLACED), breaks=(TENSORS,)
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Bufferize the entry functions. Raises MSC0404 for an operation that the contract does not name."""
        constants = ConstantParameters(op)
        for entry in entries(op):
            _Entry(op, entry, constants).replace()


@dataclass
class _Entry:
    """The entry function on its way from tensors to buffers."""

    module: ModuleOp
    function: func.FuncOp
    constants: ConstantParameters
    block: Block = field(default_factory=Block)
    kernels: dict[str, KernelSignature] = field(init=False)
    updates: Mapping[int, int] = field(init=False)
    sizes: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def __post_init__(self) -> None:
        self.kernels = dict(kernel_signatures(self.module))
        self.updates = updates(self.function)

    def replace(self) -> None:
        """Put the bufferized function in the place of the old one."""
        source = self.function.body.block
        results = source.last_op
        if not isinstance(results, func.ReturnOp):
            raise refuse("bufferize", self.function, "the entry function does not end with func.return")
        state = Bufferizer(self._handlers(), slice_destination, self._may_overwrite)
        state.donated |= {source.args[argument] for argument in self.updates.values()}
        outputs = self._arguments(state, results.arguments)
        self.sizes = {size.name: self._size(size) for size in module_sizes(self.module)}
        pairs = list(zip(results.arguments, outputs, strict=True))
        held = {outputs[result]: [source.args[argument]] for result, argument in self.updates.items()}
        state.destinations |= direct_destinations(source, pairs, held, self._may_overwrite)
        with state.inside(self.block):
            state.translate(source)
            state.move(results.arguments, outputs)
            state.emit(func.ReturnOp())
        self._install()

    def _arguments(self, state: Bufferizer, results: Sequence[SSAValue]) -> list[SSAValue]:
        """Give the new block its arguments; returns the buffers of the results: outputs, or arguments they update."""
        inputs = [self._argument(a.type, a.name_hint) for a in self.function.body.block.args]
        state.values |= zip(self.function.body.block.args, inputs, strict=True)
        return [
            inputs[self.updates[k]] if k in self.updates else self._argument(value.type, _name_of(attributes))
            for k, (value, attributes) in enumerate(zip(results, self._result_attributes(), strict=True))
        ]

    def _argument(self, type_: Attribute, hint: str | None) -> SSAValue:
        value = self.block.insert_arg(buffer_type(tensor_type(type_)), len(self.block.args))
        value.name_hint = valid_hint(hint)
        return value

    def _size(self, size: Size) -> SSAValue:
        """An argument for a size that the call decides."""
        value = self.block.insert_arg(IndexType(), len(self.block.args))
        value.name_hint = valid_hint(size.name)
        return value

    def _install(self) -> None:
        old = self.function
        inputs, outputs = old.function_type.inputs.data, old.function_type.outputs.data
        own = [k for k in range(len(outputs)) if k not in self.updates]
        results = self._result_attributes()
        attributes = [
            *_with_role(self._argument_attributes(), inputs, "input"),
            *_with_role([results[k] for k in own], [outputs[k] for k in own], "output"),
            *(
                DictionaryAttr({**size_attributes(s).data, MS_ROLE: StringAttr("size")})
                for s in module_sizes(self.module)
            ),
        ]
        for result, argument in self.updates.items():
            state = {MS_ROLE: StringAttr(STATE), RESULT: IntegerAttr(result, i64)}
            attributes[argument] = DictionaryAttr({**attributes[argument].data, **state})
        new = func.FuncOp(
            old.sym_name.data,
            FunctionType.from_lists(self.block.arg_types, []),
            Region(self.block),
            old.sym_visibility,
            arg_attrs=ArrayAttr(attributes),
        )
        new.attributes |= old.attributes
        new.location = old.location
        self.module.body.block.insert_op_before(new, old)
        self.module.body.block.erase_op(old)

    def _argument_attributes(self) -> list[DictionaryAttr]:
        given = self.function.arg_attrs
        return list(given) if given is not None else [DictionaryAttr({})] * len(self.function.function_type.inputs)

    def _result_attributes(self) -> list[DictionaryAttr]:
        given = self.function.res_attrs
        return list(given) if given is not None else [DictionaryAttr({})] * len(self.function.function_type.outputs)

    def _handlers(self) -> dict[type[Operation], Callable[[Bufferizer, Operation], None]]:
        return {
            KernelOp: self._kernel,
            CallKernelOp: self._kernel,
            ViewOp: _view,
            GetParameterOp: _parameter,
            ConstantOp: self._constant,
            ExtractSliceOp: bufferize_extract_slice,
            InsertSliceOp: bufferize_insert_slice,
            tensor.EmptyOp: _empty,
            tensor.ExtractOp: _extract,
            tensor.FromElementsOp: _from_elements,
            scf.IfOp: bufferize_if,
            scf.ForOp: bufferize_for,
            scf.WhileOp: bufferize_while,
        }

    def _kernel(self, state: Bufferizer, op: Operation) -> None:
        signature, name = self._signature(op)
        inputs = state.buffers(op.operands)
        outputs = [state.result_buffer(result) for result in op.results]
        temporaries = [state.new_buffer(type_, "scratch") for type_ in signature.temporary_types]
        given = [*inputs, *outputs, *temporaries]
        if len(given) != len(signature.types) or not all(map(_same_bytes, given, signature.types)):
            raise refuse("bufferize", op, f"@{name} does not take the inputs and outputs of its kernel")
        pairs = zip(given, signature.types, strict=True)
        arguments = [state.view(a, memref_type(type_), a.name_hint) for a, type_ in pairs]
        state.emit(func.CallOp(name, [*arguments, *(self.sizes[size] for size in signature.sizes)], []))

    def _may_overwrite(self, result: SSAValue, held: SSAValue) -> bool:
        """Whether `result` may be written over `held`: by a kernel everywhere that it reads that, or by a loop.

        A loop may if it begins with what is held there and nothing in it reads that.
        """
        if not isinstance(result, OpResult):
            return False
        if isinstance(result.op, scf.ForOp | scf.WhileOp):
            begun = [(v, i) for v, i in starts(result.op) if storage_root(v) is held]
            return all(i == result.index and view_root(v) is held for v, i in begun)
        if not isinstance(result.op, KernelOp | CallKernelOp):
            return False
        in_place = self._signature(result.op)[0].in_place
        reads = [(i, v) for i, v in enumerate(result.op.inputs) if storage_root(v) is held]
        return all(view_root(v) is held and (result.index, i) in in_place for i, v in reads)

    def _signature(self, op: Operation) -> tuple[KernelSignature, str]:
        symbol = op.attributes.get(GK_FUNCTION)
        name = symbol.string_value() if isinstance(symbol, SymbolRefAttr) else ""
        if name not in self.kernels:
            raise refuse("bufferize", op, f"the kernel has no function ({GK_FUNCTION}); convert-gk-to-loop makes it")
        return self.kernels[name], name

    def _constant(self, state: Bufferizer, op: Operation) -> None:
        if isinstance(op, ConstantOp):
            _global(state, op.result, self.constants.symbol(op))


def _same_bytes(buffer: SSAValue, type_: Attribute) -> bool:
    """Whether a buffer is one of the type, or has its elements in another number of dimensions."""
    same_elements = element_type(buffer) == memref_type(type_).element_type
    return same_elements and prod(static_shape(buffer)) == prod(static_shape(type_))


def _view(state: Bufferizer, op: Operation) -> None:
    (result,) = op.results
    type_ = buffer_type(tensor_type(result))
    state.values[result] = state.view(state.values[op.operands[0]], type_, result.name_hint)


def _parameter(state: Bufferizer, op: Operation) -> None:
    if isinstance(op, GetParameterOp):
        _global(state, op.result, op.symbol)


def _global(state: Bufferizer, result: SSAValue, symbol: str) -> None:
    buffer = state.emit(memref.GetGlobalOp(symbol, buffer_type(tensor_type(result)))).memref
    buffer.name_hint = result.name_hint
    state.values[result] = buffer


def _extract(state: Bufferizer, op: Operation) -> None:
    source, *indices = state.buffers(op.operands)
    load = state.emit(memref.LoadOp.get(source, indices))
    load.res.name_hint = op.results[0].name_hint
    state.values[op.results[0]] = load.res


def _empty(state: Bufferizer, op: Operation) -> None:
    state.result_buffer(op.results[0])


def _from_elements(state: Bufferizer, op: Operation) -> None:
    """A buffer of scalars, if anything reads one; an index that is known to lie inside its axis stays a scalar."""
    if all(indexes_known_place(use) for use in op.results[0].uses):
        return
    target = state.result_buffer(op.results[0])
    places = np.ndindex(*static_shape(target))
    for value, place in zip(state.buffers(op.operands), places, strict=True):
        indices = [state.emit(arith.ConstantOp.from_int_and_width(i, IndexType())).result for i in place]
        state.emit(memref.StoreOp.get(value, target, indices))


def _name_of(attributes: DictionaryAttr) -> str | None:
    name = attributes.data.get(MS_NAME)
    return name.data if isinstance(name, StringAttr) else None


def _with_role(given: Sequence[DictionaryAttr], types: Sequence[Attribute], role: str) -> list[DictionaryAttr]:
    return [
        DictionaryAttr({**attributes.data, MS_ROLE: StringAttr(role), **_unsigned(type_)})
        for attributes, type_ in zip(given, types, strict=True)
    ]


def _unsigned(type_: Attribute) -> dict[str, Attribute]:
    """The element type that the signless buffer does not tell."""
    element = tensor_type(type_).element_type
    name = dtype_name(element)
    return {} if storage_type(element) == element or name is None else {MS_DTYPE: StringAttr(name)}


# Small constants of the entry function as derived parameters, so that the weights contain all constant data.
@dataclass
class ConstantParameters:
    """Gives every distinct constant a derived parameter: `ms.parameter @constant_0 = { ms.constant; ms.yield }`."""

    module: ModuleOp
    _known: dict[DenseIntOrFPElementsAttr, str] = field(default_factory=dict[DenseIntOrFPElementsAttr, str])

    def symbol(self, constant: ConstantOp) -> str:
        """The parameter that holds the value of `constant`, declared if need be."""
        if constant.value not in self._known:
            self._known[constant.value] = self._declare(constant)
        return self._known[constant.value]

    def _declare(self, constant: ConstantOp) -> str:
        name = _unused_name("constant", self._names())
        parameter = ParameterOp(name, tensor_type(constant.result), _initialiser(constant))
        set_location(parameter, constant.location)
        self._insert(parameter)
        return name

    def _names(self) -> set[str]:
        symbols = (op.properties.get("sym_name") for op in self.module.body.block.ops)
        return {symbol.data for symbol in symbols if isinstance(symbol, StringAttr)}

    def _insert(self, parameter: Operation) -> None:
        """After the last parameter, or first of all."""
        block = self.module.body.block
        last = next((op for op in reversed(list(block.ops)) if isinstance(op, ParameterOp)), None)
        if last is not None:
            block.insert_op_after(parameter, last)
        elif block.first_op is not None:
            block.insert_op_before(parameter, block.first_op)


def _initialiser(constant: ConstantOp) -> Region:
    value = ConstantOp(value=constant.value)
    return Region(Block([value, YieldOp(value.result)]))


def _unused_name(stem: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{stem}_{number}") in taken:
        number += 1
    return name
