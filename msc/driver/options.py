"""What a user chooses about a compilation. Imports nothing heavy: the cache is asked before any compiler is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from msc.backends.backend import Backend
from msc.backends.registry import DEFAULT, find_backend
from msc.formats.format import Reading
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

if TYPE_CHECKING:
    from xdsl.context import Context

    from msc.dialects.arrays import Array

DEFAULT_MEMORY = 4 << 30
"""Bytes that a model may need, all told, unless `--max-memory` says otherwise."""

_LARGEST_SIZE = 1 << 40
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class InputValue:
    """The value of an input, as its NumPy dtype's name, its shape and its bytes: equal values have equal text."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(array: Array) -> InputValue:
        """An array as the options have it."""
        return InputValue(array.dtype.name, array.shape, array.tobytes())

    @property
    def array(self) -> Array:
        """The value as an array."""
        import ml_dtypes
        import numpy as np

        return np.frombuffer(self.data, np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))).reshape(self.shape)


Dim: TypeAlias = int | tuple[int, int]
"""The size of a dimension, or the range in which each call decides it."""


PRECISIONS = ("f32", "bf16", "f16")
"""Of the operands of products."""


@dataclass(frozen=True)
class CompileOptions:
    """Everything that decides what a model is compiled to: one value of this, one model, one sequence of bytes.

    `target` names a back end, `march` a machine of it or the file of one (.toml), and `threads` share a kernel: 0 is
    one on each processor; where they are None, those that a stage file was made for count, else the back end's own.
    `dims` gives sizes to dimensions that the model leaves open, or a range (least, largest) in which each call
    decides, `memory` limits the bytes of weights, workspace, inputs and outputs together, `weights` is the folder of
    the weights where it is not that of the model, `start` names the stage of a file whose extension does not,
    `input_values` fixes inputs of a model file ("0,1"), which then are inputs no more, `shapes` are whole shapes of
    inputs, for what the model and `dims` leave open, `tuned` is a file of `msc tune` whose schedules are used,
    `flush_subnormals` takes zeros for subnormal numbers, `check_indices` has a call look at the indices in its inputs
    first, `without` names optimisations of the back end that are
    turned off. `ram_limit`, `rom_limit` and `stack_limit` are bytes of a small machine's memory that workspace and
    stack, weights and code, and the stack may take; 0: what the machine's file says. `mesh`, as in "dp=2,tp=2", makes
    the program of one of so many ranks, which meet through MPI. `layout` is that of a bundle for a microcontroller
    (`msc.runtime.layouts`). `precision` is that of the operands of products: "bf16" and "f16" sum up in f32.
    """

    target: str = DEFAULT
    march: str | None = None
    threads: int | None = None
    dims: Mapping[str, Dim] = field(default_factory=dict[str, "Dim"])
    memory: int = DEFAULT_MEMORY
    weights: Path | None = None
    start: str | None = None
    name: str | None = None
    profile: bool = False
    export_kernels: bool = False
    input_values: Mapping[str, str | InputValue] = field(default_factory=dict[str, "str | InputValue"])
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    tuned: Path | None = None
    flush_subnormals: bool = False
    check_indices: bool = False
    without: tuple[str, ...] = ()
    ram_limit: int = 0
    rom_limit: int = 0
    stack_limit: int = 0
    mesh: str = ""
    layout: str = ""
    precision: str = "f32"

    def __post_init__(self) -> None:
        """Raises MSC0506 for an unknown target, MSC0501 for an unknown machine, MSC0008 for a number out of range."""
        switches = self.backend.all_switches
        if self.march not in (None, self.backend.default_machine):
            self.backend.describe(self.march)
        if self.threads is not None and not 0 <= self.threads <= 1024:
            raise MscError(Diagnostic("MSC0008", f"threads is {self.threads}; it is 0 (automatic) to 1024"))
        if self.precision not in PRECISIONS:
            advice = did_you_mean(self.precision, PRECISIONS) or f"it is one of {', '.join(PRECISIONS)}"
            raise MscError(Diagnostic("MSC0008", f"there is no precision '{self.precision}'", help=advice))
        for name in self.without:
            if name not in switches:
                advice = did_you_mean(name, switches) or f"they are {', '.join(switches)}"
                raise MscError(Diagnostic("MSC0008", f"there is no optimisation '{name}' to go without", help=advice))
        for name, size in self.dims.items():
            low, high = size if isinstance(size, tuple) else (size, size)
            if low < 1:
                raise MscError(Diagnostic("MSC0008", f"dimension '{name}' is {low}; a size is at least 1"))
            if high > _LARGEST_SIZE:
                message = f"dimension '{name}' is {high}; a tensor has at most 2^40 elements"
                raise MscError(Diagnostic("MSC0008", message))
            if low > high:
                message = f"dimension '{name}' is {low}..{high}; a range goes from its least to its largest size"
                raise MscError(Diagnostic("MSC0008", message))

    @property
    def team(self) -> int:
        """The threads that are asked for, 1 where nothing is said; 0 is one on each processor."""
        return 1 if self.threads is None else self.threads

    @property
    def backend(self) -> Backend:
        """What the model is compiled for."""
        return find_backend(self.target)

    @property
    def largest_dims(self) -> dict[str, int]:
        """The size of each dimension, the largest where calls decide it."""
        return {name: size[1] if isinstance(size, tuple) else size for name, size in self.dims.items()}

    @property
    def open_dims(self) -> dict[str, tuple[int, int]]:
        """The dimensions whose size calls decide, with the least and the largest."""
        ranges = {name: size for name, size in self.dims.items() if isinstance(size, tuple)}
        return {name: (low, high) for name, (low, high) in ranges.items() if low < high}

    @property
    def has_ranges(self) -> bool:
        """Whether a dimension was given a range, be it of one size: the model must be one for all sizes."""
        return any(isinstance(size, tuple) for size in self.dims.values())

    def reading(self, context: Callable[[], Context] | None = None) -> Reading:
        """What a format takes of the options; `context` makes one with the dialects of all stages."""
        given = self.input_values
        return Reading(
            dims=self.largest_dims,
            open_dims=self.open_dims,
            has_ranges=self.has_ranges,
            shapes=self.shapes,
            texts={name: value for name, value in given.items() if isinstance(value, str)},
            values={name: value.array for name, value in given.items() if isinstance(value, InputValue)},
            context=context,
        )

    def key(self) -> str:
        """The options as text: equal for equal options."""
        return "\n".join(f"{f.name}={_plain(getattr(self, f.name))}" for f in fields(self))


def _plain(value: object) -> str:
    return repr(sorted(cast("Mapping[str, object]", value).items())) if isinstance(value, Mapping) else repr(value)


@dataclass(frozen=True)
class Reporting:
    """What a user sees of a compilation on the way. None of it changes the result.

    `print_after` holds names of passes, or `all`, or `changed`; `dump` is the folder for the text of every stage;
    `verify_each` verifies after every pass and not after every stage alone; `save_temps` keeps the compiler's files;
    `force` lets both replace files that msc did not write.
    """

    print_after: frozenset[str] = frozenset()
    dump: Path | None = None
    verify_each: bool = False
    save_temps: Path | None = None
    force: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether a result from the cache shows all there is to see."""
        return not self.print_after and self.dump is None and self.save_temps is None


def parse_size(text: str) -> int:
    """Bytes from `1073741824`, `512M` or `4G`. Raises MSC0008."""
    number, unit = text.strip().upper().removesuffix("IB").removesuffix("B"), ""
    if number and number[-1] in "KMG":
        number, unit = number[:-1], number[-1]
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise MscError(Diagnostic("MSC0008", f"'{text}' is not a size; write 512M or 4G"))
    return int(number) * _UNITS[unit]
