"""Collectives: what the ranks of a group compute together. Every rank runs the same operations in the same order.

`ranks = [0, 1, 2, 3], groups = 2` are the groups {0, 1} and {2, 3}: a rank takes part in the one that it is in, at the
place where it stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, OpTraits
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.element_types import FAMILIES
from msc.dialects.ms.base import TensorOp
from msc.dialects.ms.properties import choice_property, int_property, required_ints
from msc.dialects.ms.shapes import UNKNOWN, Shape, normal_axis, shape_text, tensor_type
from msc.ir.errors import DtypeConflict, InvalidAttribute, ShapeConflict

REDUCTIONS = ("sum", "prod", "max", "min")


class CollectiveOp(TensorOp):
    """An operation on one tensor of each rank of a group. It is never dropped, merged with another or moved before one:
    ranks that run different sequences wait for each other for ever.
    """

    x = operand_def(TensorType)
    ranks = required_ints()

    @property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The groups. Raises InvalidAttribute for ranks that form none."""
        ranks, count = self.ints("ranks"), self.int_("groups")
        if count < 1 or not ranks or len(ranks) % count or len(set(ranks)) < len(ranks) or min(ranks) < 0:
            raise InvalidAttribute(
                f"{self.name}: ranks {list(ranks)} do not form {count} groups of one size in which each stands once"
            )
        size = len(ranks) // count
        return tuple(ranks[start : start + size] for start in range(0, len(ranks), size))

    @property
    def group_size(self) -> int:
        """How many ranks a group has."""
        return len(self.members[0])

    def axis_of(self, name: str) -> int:
        """A property that names an axis of the operand. Raises InvalidAttribute."""
        return normal_axis(self.name, self.int_(name), len(self.shape(0)))

    def with_size(self, axis: int, size: int) -> Shape:
        shape = self.shape(0)
        return (*shape[:axis], size, *shape[axis + 1 :])

    def multiplied(self, axis: int) -> Shape:
        """The operand's shape with an axis as long as those of all ranks together."""
        size = self.shape(0)[axis]
        return self.with_size(axis, size if size == UNKNOWN else size * self.group_size)

    def divided(self, axis: int) -> Shape:
        """The operand's shape with one rank's part of an axis. Raises ShapeConflict."""
        size = self.shape(0)[axis]
        if size != UNKNOWN and size % self.group_size:
            raise ShapeConflict(
                f"{self.name}: axis {axis} of {shape_text(self.shape(0))} does not divide among {self.group_size} ranks"
            )
        return self.with_size(axis, size if size == UNKNOWN else size // self.group_size)

    def given(self, shape: Shape) -> Sequence[TensorType[Attribute]]:
        """A result of the operand's element type, which is not one bit for reductions."""
        self.members  # noqa: B018  (raises)
        dtype = self.expect_dtype(0, "any")
        if "reduce" in self.properties and dtype not in FAMILIES["a number"]:
            raise DtypeConflict(f"{self.name}: operand 0 has element type {dtype}; what is reduced are numbers")
        return (tensor_type(dtype, shape),)


@irdl_op_definition
class AllReduceOp(CollectiveOp):
    """The sum (or prod, max, min) of the tensors of all ranks of a group, on each. MindSpore AllReduce."""

    name = "ms.all_reduce"
    CHOICES: ClassVar = {"reduce": REDUCTIONS}
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0]}"
    groups = int_property(1)
    reduce = choice_property("sum")

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return self.given(self.shape(0))


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """The tensors of all ranks of a group joined along `axis`, on each. MindSpore AllGather."""

    name = "ms.all_gather"
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0]}"
    groups = int_property(1)
    axis = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return self.given(self.multiplied(self.axis_of("axis")))


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """The rank's part along `axis` of the sum (or prod, max, min) over a group. MindSpore ReduceScatter."""

    name = "ms.reduce_scatter"
    CHOICES: ClassVar = {"reduce": REDUCTIONS}
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0]}"
    groups = int_property(1)
    axis = int_property(0)
    reduce = choice_property("sum")

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return self.given(self.divided(self.axis_of("axis")))


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """Each rank gives every other its part along `split`, and joins what it gets along `concat`. MindSpore AlltoAll."""

    name = "ms.all_to_all"
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0], split = 1}"
    groups = int_property(1)
    split = int_property(0)
    concat = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        split, concat = self.axis_of("split"), self.axis_of("concat")
        shape = list(self.divided(split))
        shape[concat] = shape[concat] if shape[concat] == UNKNOWN else shape[concat] * self.group_size
        return self.given(tuple(shape))


@irdl_op_definition
class BroadcastOp(CollectiveOp):
    """The tensor of the rank at place `root` of a group, on each. MindSpore Broadcast."""

    name = "ms.broadcast"
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0]}"
    groups = int_property(1)
    root = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if not 0 <= self.int_("root") < self.group_size:
            raise InvalidAttribute(f"{self.name}: a group of {self.group_size} ranks has no place {self.int_('root')}")
        return self.given(self.shape(0))


@irdl_op_definition
class AllSliceOp(CollectiveOp):
    """The rank's part along `axis` of a tensor that all ranks of a group have. No rank waits for another."""

    name = "ms.all_slice"
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0]}"
    groups = int_property(1)
    axis = int_property(0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return self.given(self.divided(self.axis_of("axis")))


@irdl_op_definition
class SendRecvOp(CollectiveOp):
    """Each of `ranks` sends its tensor to that of `to` at its place, and a rank that nobody sends to gets zeros.

    A rank stands once in each list. MindSpore Send, Receive and NeighborExchange, XLA's collective-permute.
    """

    name = "ms.send_recv"
    EXAMPLE: ClassVar[str] = "2x3xT {ranks = [0], to = [0]}"
    to = required_ints()

    def infer(self) -> Sequence[TensorType[Attribute]]:
        for ranks in (self.ints("ranks"), self.ints("to")):
            if len(set(ranks)) < len(ranks) or min(ranks, default=0) < 0 or len(ranks) != len(self.ints("to")):
                raise InvalidAttribute(
                    f"{self.name}: {list(self.ints('ranks'))} do not send to {list(self.ints('to'))}, one to one"
                )
        return (tensor_type(self.expect_dtype(0, "any"), self.shape(0)),)

    @property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Those that send or receive, as one group."""
        return (tuple(sorted({*self.ints("ranks"), *self.ints("to")})),)


COLLECTIVES: tuple[type[CollectiveOp], ...] = (
    AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, BroadcastOp, AllSliceOp, SendRecvOp,
)  # fmt: skip
for _operation in COLLECTIVES:  # a class inherits all traits, here that other operations have no effects
    _operation.traits = OpTraits(lambda: ())
