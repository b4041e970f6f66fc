"""What a tensor is while a graph is captured, and the builder that the capture installs for its thread."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msc.frontend.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.ir import SSAValue

    from msc.frontend.parallel import Row
    from msc.frontend.parameter import Parameter
    from msc.frontend.tensor import Tensor

Property: TypeAlias = "bool | int | float | str | tuple[int, ...] | tuple[float, ...] | DType | None"
"""A property of an operation; None leaves an optional one out."""


class Symbol:
    """What a tensor holds under capture: a value of the graph, with its element type and shape (-1 where unknown)."""

    __slots__ = ("dtype", "shape", "ssa")

    def __init__(self, ssa: SSAValue, dtype: DType, shape: tuple[int, ...]) -> None:
        self.ssa = ssa
        self.dtype = dtype
        self.shape = shape


class GraphCapture(Protocol):
    """Writes the operations that library code applies to tensors of the graph that is captured."""

    def emit(
        self, name: str, operands: Sequence[Tensor | None], properties: Mapping[str, Property]
    ) -> tuple[Tensor, ...]:
        """Append `ms.<name>`; the results are symbolic. Concrete operands become constants of the graph."""
        ...

    def read(self, parameter: Parameter) -> Tensor:
        """The value that a parameter has at this place of the graph."""
        ...

    def write(self, parameter: Parameter, value: Tensor) -> None:
        """From here on the parameter has another value, which also stays after the call."""
        ...

    def changing(self, tensor: Tensor) -> None:
        """A tensor is about to refer to another value."""
        ...

    def observing(self, tensor: Tensor) -> None:
        """The elements of a tensor that has some decide on what is written."""
        ...

    def value_of(self, tensor: Tensor, what: str) -> NDArray[Any]:
        """The elements of a symbolic tensor, which `what` needs: the graph ends here and is run, if it can."""
        ...


class _Installed(threading.local):
    builder: GraphCapture | None = None
    strategy: tuple[Row | None, ...] | None = None
    """How the operands of the next operation that has their dimensions are cut."""
    stage: int | None = None
    """The stage of a pipeline that operations are on, if the cells around them say one."""
    micro: int | None = None
    """The micro-batch that operations compute on."""


INSTALLED = _Installed()
"""`INSTALLED.builder` is the builder of the capture that runs in this thread, or None."""


@contextmanager
def in_pass(*, stage: int | None = None, micro: int | None = None) -> Generator[None]:
    """Within, operations are on a stage, or of a micro-batch; None changes nothing."""
    before = INSTALLED.stage, INSTALLED.micro
    INSTALLED.stage = before[0] if stage is None else stage
    INSTALLED.micro = before[1] if micro is None else micro
    try:
        yield
    finally:
        INSTALLED.stage, INSTALLED.micro = before


@contextmanager
def capturing(builder: GraphCapture | None) -> Generator[None]:
    """Within, operations on symbolic tensors and parameters go to `builder`; without one all run at once."""
    outer, INSTALLED.builder = INSTALLED.builder, builder
    try:
        yield
    finally:
        INSTALLED.builder = outer
