"""A model at the largest sizes against the same model at others: is the one the other, restricted to what is valid?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.analysis.valid_extents import ValidExtents
from msc.dialects.arrays import Array, dense_array
from msc.dialects.ms.base import BasicOp, ViewOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.structure import ConstantOp, GetParameterOp, ParameterOp
from msc.dialects.open_sizes import VALID, valid_tensor
from msc.graph.shapes.open_moves import MovedOperations
from msc.ir.entry import find_entry
from msc.ir.locations import source_location
from msc.ir.typed import static_shape, tensor_type
from msc.poly.model import KernelStatement, statements_of
from msc.poly.scalar import reads
from msc.poly.valid_extents import is_whole, size_at, upper_bound
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError

_Given: TypeAlias = ConstantOp | GetParameterOp
_GIVEN = (ConstantOp, GetParameterOp)

Differing: TypeAlias = Mapping[tuple[Operation, int], ConstantOp]
"""Operations, by number of the operand, that compute with another number in a sample: with this one."""


@dataclass(frozen=True)
class Sample:
    """The model at other sizes, in alphabetical order of their names, and the values of parameters.

    `own_parameters` are those of the model compared with.
    """

    sizes: tuple[int, ...]
    module: ModuleOp
    parameters: Mapping[str, Array]
    own_parameters: Mapping[str, Array]


def sample_sizes(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Sizes to compare at: each dimension alone at another size than the largest, then all at once.

    Not at 1, where dimensions broadcast, if there is a larger one.
    """
    highest = [high for _, high in ranges]
    least = [min(max(low, 2), high - 1) for low, high in ranges]
    middle = [max(n, (n + high) // 2) for n, (_, high) in zip(least, ranges, strict=True)]
    alone = [tuple(n if i == k else high for i, high in enumerate(highest)) for k, n in enumerate(least)]
    return [*alone, tuple(middle)]


def differs(op: Operation, reason: str) -> MscError:
    """MSC0208: the model is another one at other sizes."""
    help_ = 'give the dimension that it works on a size: --dim NAME=8, in Python dims={"NAME": 8}'
    return DecidedByCall(Diagnostic("MSC0208", f"{op.name}: {reason}", source_location(op), help=help_))


class Comparison:
    """One sample against the module that it is of."""

    def __init__(self, module: ModuleOp, valid: ValidExtents, sample: Sample, moves: MovedOperations) -> None:
        self._valid, self._sample, self._moves = valid, sample, moves
        self._ours, self._theirs = _entry(module), _entry(sample.module)
        self._own_parameters, self._parameters = _parameters(module), _parameters(sample.module)
        self._same: dict[SSAValue, SSAValue] = {}
        self._constants: dict[tuple[Operation, int], ConstantOp] = {}
        self._compared: dict[tuple[str, str], bool] = {}
        self.cut: dict[int, tuple[int, ...]] = {}
        """The shapes at the sample of results, by number, that are computed whole whatever the sizes."""

    def check(self) -> Differing:
        """The operands that are another number in the sample. Raises MSC0208 for every other difference."""
        for op in self._valid.statements:
            if op in self._moves.made or op in self._moves.moved:
                self._check_places(op)
        self._block(self._ours.body.block, self._theirs.body.block)
        return self._constants

    def check_results(self) -> None:
        """Raises MSC0208 for results of other shapes: a size that is cut off, as that of a slice, is not linear."""
        ours, theirs = (function.body.block.last_op for function in (self._ours, self._theirs))
        assert isinstance(ours, ReturnOp)
        assert isinstance(theirs, ReturnOp)
        given = self._ours.res_attrs or [DictionaryAttr({})] * len(ours.operands)
        for number, (mine, sampled, said) in enumerate(zip(ours.operands, theirs.operands, given, strict=True)):
            is_said, shape = VALID in said.data, static_shape(sampled)
            dims = valid_tensor(said.data, static_shape(mine), self._valid.sizes) if is_said else self._valid.of(mine)
            found = tuple(size_at(dim, self._sample.sizes) for dim in dims)
            if found != shape:
                raise self._differs(ours, f"output {number} has the shape {list(shape)}, not {list(found)}")

    def _block(self, block: Block, other: Block) -> None:
        ours, theirs = ([op for op in b.ops if not isinstance(op, _GIVEN)] for b in (block, other))
        ours = [op for op in ours if op not in self._moves.made]
        self._same.update(zip(block.args, other.args, strict=True))
        for mine, sampled in zip(ours, theirs, strict=False):
            self._operation(mine, sampled)
        if len(ours) != len(theirs):
            raise self._differs(ours[-1], f"the model has {len(theirs)} operations instead of {len(ours)}")

    def _operation(self, op: Operation, other: Operation) -> None:
        if op in self._moves.moved:
            self._moved(op, other)
            return
        if type(op) is not type(other) or len(op.operands) != len(other.operands):
            raise self._differs(op, f"the model computes {other.name} here")
        for number, (mine, sampled) in enumerate(zip(op.operands, other.operands, strict=True)):
            if isinstance(mine.owner, _GIVEN) and isinstance(sampled.owner, _GIVEN):
                self._given(op, number, mine.owner, sampled.owner)
            elif self._same.get(mine) is not sampled:
                raise self._differs(op, "the model computes with other values here")
        match op, other:
            case BasicOp(), BasicOp():
                self._basic(op, other)
            case (ViewOp(), ViewOp()) | (ReturnOp(), ReturnOp()):
                pass
            case _:
                self._nested(op, other)
        self._results(op, other)
        self._same.update(zip(op.results, other.results, strict=True))

    def _moved(self, op: Operation, other: Operation) -> None:
        """An operation that stands for another one, which took these operands."""
        name, operands = self._moves.moved[op]
        if other.name != name or len(other.operands) != len(operands):
            raise self._differs(op, f"the model computes {other.name} here")
        for number, (mine, sampled) in enumerate(zip(operands, other.operands, strict=True)):
            if isinstance(mine.owner, _GIVEN) and isinstance(sampled.owner, _GIVEN):
                if not self._is_given_alike(mine.owner, sampled.owner):
                    raise self._differs(op, f"the elements of operand {number}, a constant or a parameter, are others")
            elif self._same.get(mine) is not sampled:
                raise self._differs(op, "the model computes with other values here")
        self._results(op, other)
        self._same.update(zip(op.results, other.results, strict=True))

    def _results(self, op: Operation, other: Operation) -> None:
        """Every tensor has at least the elements that it has at the sample's sizes; what is valid of it, just those."""
        ours, theirs = (op.operands, other.operands) if isinstance(op, ReturnOp) else (op.results, other.results)
        for number, (value, at_sample) in enumerate(zip(ours, theirs, strict=True)):
            if not isinstance(value.type, TensorType):
                continue
            if tensor_type(value).element_type != tensor_type(at_sample).element_type:
                raise self._differs(op, f"it gives {at_sample.type}")
            shape, valid = static_shape(at_sample), self._valid.of(value)
            found = tuple(size_at(dim, self._sample.sizes) for dim in valid)
            exact = [not is_whole(dim) for dim in valid]
            fits = len(found) == len(shape) and all(
                a == b if e else a >= b for a, b, e in zip(found, shape, exact, strict=True)
            )
            if not fits:
                raise self._differs(op, f"a tensor is {_by(shape)}, where {_by(found)} was derived")
            if isinstance(op, ReturnOp) and found != shape:
                self.cut[number] = shape

    def _basic(self, op: BasicOp, other: BasicOp) -> None:
        ours, analysis = self._valid.statements[op]
        theirs = _statements(other)
        running = [s for s in ours if s.points]
        if len(ours) != len(theirs) or len(running) != len(analysis.statements):
            raise self._differs(op, "it is computed otherwise")
        self._check_indices(op, ours)
        dims = iter(analysis.statements)
        for mine, sampled in zip(ours, theirs, strict=True):
            if _computation(mine) != _computation(sampled):
                raise self._differs(op, "it is computed otherwise: a number in it depends on the size")
            if mine.points:
                self._extents(op, mine, sampled, [upper_bound(dim) for dim in next(dims)])

    def _check_indices(self, op: BasicOp, statements: Sequence[KernelStatement]) -> None:
        """Indices that are data count from the end of what is valid, and are cut to that, only in what is rewritten."""
        for read in (read for statement in statements for read in reads(statement.body)):
            valid = self._valid.of(op.operands[read.operand]) if read.indirect else ()
            if any(not is_whole(valid[axis]) for axis, _ in read.indirect):
                raise self._differs(op, "a dimension of open size is read at an index that is data")

    def _check_places(self, op: Operation) -> None:
        """What is rewritten counts the valid elements of an axis; where the axis merges several, they lie apart."""
        for read in (read for statement in self._valid.statements[op][0] for read in reads(statement.body)):
            valid = self._valid.of(op.operands[read.operand]) if read.indirect else ()
            if any(len(valid[axis]) > 1 for axis, _ in read.indirect):
                raise self._differs(op, "it moves elements along a dimension that merges one of open size with others")

    def _extents(
        self, op: Operation, mine: KernelStatement, sampled: KernelStatement, bounds: Sequence[AffineExpr | None]
    ) -> None:
        for d, (extent, at_sample, bound) in enumerate(zip(mine.extents, sampled.extents, bounds, strict=True)):
            found = extent if bound is None else bound.eval(self._sample.sizes, ())
            if found < at_sample or (found > at_sample and d in mine.reduced):
                raise self._differs(op, f"loop {mine.names[d]} has {at_sample} iterations, where {found} were derived")

    def _given(self, user: Operation, number: int, mine: _Given, sampled: _Given) -> None:
        """Operand `number` of an operation: a constant or a parameter, which are small and large arrays."""
        if isinstance(mine, ConstantOp) and isinstance(sampled, ConstantOp):
            a, b = splat_of(mine.result), splat_of(sampled.result)
            if a is not None and b is not None:
                if a != b:
                    self._constants[user, number] = sampled
                return
            if mine.result.type == sampled.result.type and not is_part(
                dense_array(sampled.value), dense_array(mine.value)
            ):
                self._constants[user, number] = sampled
                return
        if not self._is_given_alike(mine, sampled):
            raise self._differs(user, f"the elements of operand {number}, a constant or a parameter, are others")

    def _is_given_alike(self, mine: _Given, sampled: _Given) -> bool:
        if isinstance(mine, GetParameterOp) and isinstance(sampled, GetParameterOp):
            return self._is_same_parameter(mine.symbol, sampled.symbol)
        return is_part(_value(sampled, self._sample.parameters), _value(mine, self._sample.own_parameters))

    def _is_same_parameter(self, name: str, other: str) -> bool:
        """Whether the sample's parameter is the beginning of ours along each axis: computed alike, or by its values."""
        if (name, other) not in self._compared:
            ours, theirs = self._own_parameters[name], self._parameters[other]
            self._compared[name, other] = self._is_computed_alike(ours, theirs) or is_part(
                self._sample.parameters[other], self._sample.own_parameters[name]
            )
        return self._compared[name, other]

    def _is_computed_alike(self, ours: ParameterOp, theirs: ParameterOp) -> bool:
        if ours.initialiser is None or theirs.initialiser is None or str(ours) != str(theirs):
            return False
        read = [op.symbol for op in ours.walk() if isinstance(op, GetParameterOp)]
        return all(self._is_same_parameter(name, name) for name in read)

    def _nested(self, op: Operation, other: Operation) -> None:
        """An operation with regions, or without a compute definition: its properties and all in it are the same."""
        alike = op.properties == other.properties and len(op.regions) == len(other.regions)
        if not alike or len(op.results) != len(other.results):
            raise self._differs(op, "it is another one")
        for ours, theirs in zip(op.regions, other.regions, strict=True):
            for block, at_sample in zip(ours.blocks, theirs.blocks, strict=True):
                self._block(block, at_sample)

    def _differs(self, op: Operation, reason: str) -> MscError:
        at = ", ".join(f"{s.name} = {n}" for s, n in zip(self._valid.sizes, self._sample.sizes, strict=True))
        return differs(op, f"at {at} {reason}")


def _entry(module: ModuleOp) -> FuncOp:
    entry = find_entry(module)
    assert entry is not None  # whose arguments name the sizes
    return entry


def _parameters(module: ModuleOp) -> dict[str, ParameterOp]:
    return {op.symbol: op for op in module.ops if isinstance(op, ParameterOp)}


def _value(op: _Given, parameters: Mapping[str, Array]) -> Array:
    """The elements of a constant or a parameter."""
    return parameters[op.symbol] if isinstance(op, GetParameterOp) else dense_array(op.value)


def _statements(op: BasicOp) -> list[KernelStatement]:
    first, count = len(op.operands), len(op.results)
    dtypes = [op.result_dtype(k) for k in range(count)]
    return statements_of(op.compute(), range(first), range(first, first + count), 0, dtypes)


def _computation(statement: KernelStatement) -> tuple[object, ...]:
    return statement.names, statement.target, statement.write, statement.body, statement.combine


def is_part(part: Array, of: Array) -> bool:
    """Whether an array is the beginning of another along each axis."""
    if part.ndim != of.ndim or part.dtype != of.dtype or any(a > b for a, b in zip(part.shape, of.shape, strict=True)):
        return False
    beginning = np.ascontiguousarray(of[tuple(slice(n) for n in part.shape)])
    return np.array_equal(_bytes(part), _bytes(beginning))


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
