"""Operations that order others: flags between pipes, barriers, flags between cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from msc.dialects.loop.affine_syntax import AffineReader, check_affine, print_affine
from msc.targets.davinci_isa import Pipe


class FlagOp(IRDLOperation):
    """A flag of a pair of pipes: `davinci.set_flag MTE2 -> MTE1, %k mod 2`."""

    values = var_operand_def(IndexType)
    source = prop_def(IntegerAttr)
    target = prop_def(IntegerAttr)
    event = prop_def(AffineMapAttr)

    def __init__(self, source: Pipe, target: Pipe, event: AffineMap | int, values: Sequence[SSAValue] = ()):
        map_ = AffineMap(0, 0, (AffineExpr.constant(event),)) if isinstance(event, int) else event
        super().__init__(
            operands=[list(values)],
            properties={
                "source": IntegerAttr(int(source), i64),
                "target": IntegerAttr(int(target), i64),
                "event": AffineMapAttr(map_),
            },
        )

    @property
    def pipes(self) -> tuple[Pipe, Pipe]:
        """The pipe that sets the flag, the pipe that waits for it."""
        return Pipe(self.source.value.data), Pipe(self.target.value.data)

    def verify_(self) -> None:
        source, target = self.pipes
        if source is target or Pipe.ALL in (source, target):
            raise VerifyException(f"{self.name}: a flag is of two pipes, not {source.name} -> {target.name}")
        check_affine(self.name, self.event.data, len(self.values))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = _pipe(parser)
        parser.parse_punctuation("->")
        target = _pipe(parser)
        parser.parse_punctuation(",")
        reader = AffineReader(parser)
        expr = reader.expression()
        return cls(source, target, reader.map([expr]), reader.values)

    def print(self, printer: Printer) -> None:
        source, target = self.pipes
        printer.print_string(f" {source.name} -> {target.name}, ")
        print_affine(printer, self.event.data.results[0], self.values)


@irdl_op_definition
class SetFlagOp(FlagOp):
    """Set the flag when all earlier instructions of the first pipe have ended."""

    name = "davinci.set_flag"


@irdl_op_definition
class WaitFlagOp(FlagOp):
    """The second pipe goes on when the flag is set, and clears it."""

    name = "davinci.wait_flag"


@irdl_op_definition
class PipeBarrierOp(IRDLOperation):
    """A pipe goes on when its earlier instructions have ended: `davinci.pipe_barrier V`; ALL stops the scalar unit."""

    name = "davinci.pipe_barrier"
    pipe = prop_def(IntegerAttr)

    def __init__(self, pipe: Pipe):
        super().__init__(properties={"pipe": IntegerAttr(int(pipe), i64)})

    @property
    def which(self) -> Pipe:
        """The pipe."""
        return Pipe(self.pipe.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls(_pipe(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.which.name}")


class CrossCoreOp(IRDLOperation):
    """A flag between cores: mode 0 all cores of a kind, 1 the vector cores of a block, 2 its cube and vector cores."""

    MODES: ClassVar[int] = 2
    mode = prop_def(IntegerAttr)
    flag = prop_def(IntegerAttr)

    def verify_(self) -> None:
        if not 0 <= self.mode.value.data <= self.MODES:
            raise VerifyException(f"{self.name}: mode {self.mode.value.data}; there are 0 to {self.MODES}")
        if not 0 <= self.flag.value.data <= 15:
            raise VerifyException(f"{self.name}: flag {self.flag.value.data}; there are 0 to 15")


@irdl_op_definition
class CrossCoreSyncOp(CrossCoreOp):
    """Tell other cores that the work of a pipe has ended: `davinci.ffts_cross_core_sync FIX, mode 2, flag 0`."""

    name = "davinci.ffts_cross_core_sync"
    pipe = prop_def(IntegerAttr)

    def __init__(self, pipe: Pipe, mode: int, flag: int):
        given = {"pipe": int(pipe), "mode": mode, "flag": flag}
        super().__init__(properties={name: IntegerAttr(value, i64) for name, value in given.items()})

    @property
    def which(self) -> Pipe:
        """The pipe."""
        return Pipe(self.pipe.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pipe = _pipe(parser)
        parser.parse_punctuation(",")
        return cls(pipe, *_mode_and_flag(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.which.name}, mode {self.mode.value.data}, flag {self.flag.value.data}")


@irdl_op_definition
class WaitFlagDevOp(CrossCoreOp):
    """The scalar unit waits until all cores of the group have told: `davinci.wait_flag_dev mode 2, flag 0`."""

    name = "davinci.wait_flag_dev"

    def __init__(self, mode: int, flag: int):
        super().__init__(properties={"mode": IntegerAttr(mode, i64), "flag": IntegerAttr(flag, i64)})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls(*_mode_and_flag(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" mode {self.mode.value.data}, flag {self.flag.value.data}")


def _pipe(parser: Parser) -> Pipe:
    start = parser.pos
    word = parser.parse_identifier("a pipe")
    if word not in Pipe.__members__:
        parser.raise_error(f"there is no pipe '{word}'; there are {', '.join(Pipe.__members__)}", start, parser.pos)
    return Pipe[word]


def _mode_and_flag(parser: Parser) -> tuple[int, int]:
    parser.parse_keyword("mode")
    mode = parser.parse_integer(allow_boolean=False)
    parser.parse_punctuation(",")
    parser.parse_keyword("flag")
    return mode, parser.parse_integer(allow_boolean=False)
