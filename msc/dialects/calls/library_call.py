"""Operations that are one call of a C function: what is to be known of the function, said once.

`gk.call "argsort"` is such an operation on tensors, `loop.call "argsort"` one call, for a row of its buffers. The
passes between them, the verifiers, the interpreter and the C generator ask the `LibraryCall` of the name, and know no
function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from msc.dialects.arrays import Array

Rows: TypeAlias = TensorType[Attribute] | MemRefType[Attribute]
"""A tensor or buffer; a row is what its last axis holds."""


@dataclass(frozen=True)
class Prototype:
    """`void name(inputs, size, output, its row's length, ..., scratch, more)`, at the element type of the first input.

    Each pointer is that of a row; `size` is the number of valid elements in a row of the inputs.
    """

    name: str
    more: tuple[int | tuple[int, ...], ...] = ()
    """Integers, and lists of them."""


class LibraryCall:
    """A C function that is called for each row of its inputs, which have the same leading axes, as have its outputs.

    It reads its inputs, writes its outputs and scratch memory, and nothing else. An output whose row is as long as that
    of the inputs has as many valid elements as they have; any other is written whole.
    """

    name: ClassVar[str]
    inputs: ClassVar[tuple[str, ...]]
    """Names of the arguments that are read."""
    outputs: ClassVar[tuple[str, ...]]
    """Names of the arguments that are written."""
    in_place: ClassVar[frozenset[tuple[int, int]]] = frozenset()
    """Pairs (output, input) that may be one buffer."""
    pure: ClassVar[bool] = True
    """Whether equal inputs give equal outputs, and nobody notices a call whose outputs are not read."""
    headers: ClassVar[tuple[str, ...]] = ()
    """What its text includes."""
    text: ClassVar[str | Path]
    """C text with marks for the element type (`codegen/c/template.py`), or its file; sections `/*** name ***/`."""

    @property
    def spelling(self) -> str:
        """The name, with the arguments of a function that has some: what operations call it by."""
        return self.name

    def check(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> None:
        """Raises VerifyException for types that the function does not take; their leading axes agree."""
        raise NotImplementedError

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        """The outputs for rows along the last axes; `lengths` are those of the outputs' rows."""
        raise NotImplementedError

    def prototype(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> Prototype:
        """The function to call, for types."""
        return Prototype(self.name)

    def scratch(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> int:
        """Elements of scratch memory, of the type of the first input."""
        return 0

    def check_all(self, op: str, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> None:
        """Raises VerifyException for types of an operation that the function does not take."""
        if (len(inputs), len(outputs)) != (len(self.inputs), len(self.outputs)):
            raise VerifyException(
                f"{op}: {self.name} takes {', '.join(self.inputs)} and gives {', '.join(self.outputs)}"
            )
        shapes = [type_.get_shape() for type_ in (*inputs, *outputs)]
        if not all(shapes) or len({tuple(shape[:-1]) for shape in shapes}) > 1:
            raise VerifyException(f"{op}: {', '.join(map(str, map(list, shapes)))} are not rows of the same axes")
        try:
            self.check(inputs, outputs)
        except VerifyException as wrong:
            raise VerifyException(f"{op}: {self.name}: {wrong}") from None


CALLS: dict[str, LibraryCall] = {}
"""The functions by name."""


def register(call: LibraryCall) -> None:
    """Add a function. Raises ValueError for a name that has one."""
    if CALLS.setdefault(call.name, call) is not call:
        raise ValueError(f"two library calls {call.name!r}")


FAMILIES: dict[str, tuple[type[LibraryCall], Callable[[str], LibraryCall]]] = {}
"""Functions with arguments by name: their class, and what reads their arguments."""


def register_family(family: type[LibraryCall], read: Callable[[str], LibraryCall]) -> None:
    """Add functions that are called by a name and arguments behind it."""
    FAMILIES[family.name] = family, read


def call_named(op: str, name: str) -> LibraryCall:
    """The function of a name, which may have arguments. Raises VerifyException where there is none."""
    family, _, arguments = name.partition(" ")
    if family in FAMILIES:
        return FAMILIES[family][1](arguments)
    if name not in CALLS:
        raise VerifyException(f"{op}: no library call is named {name!r}, but {', '.join((*CALLS, *FAMILIES))}")
    return CALLS[name]
