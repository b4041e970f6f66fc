"""What every reader of a model makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.arrays import Array


@dataclass(frozen=True)
class Imported:
    """A module, and the values of its parameters."""

    module: ModuleOp
    weights: Mapping[str, Array] = field(default_factory=dict[str, Array])
    outputs: tuple[str, ...] = ()
    """The names of the results, in order."""
    codes: Mapping[str, np.dtype[Any]] = field(default_factory=dict[str, np.dtype[Any]])
    """Inputs and results that are codes of a type which the module has as ui8."""
    files: tuple[str, ...] = ()
    """The files beside the model that hold its data, relative to its folder."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """The texts that errors quote, by the names of their files."""
    samples: Mapping[tuple[int, ...], Imported] = field(default_factory=dict[tuple[int, ...], "Imported"])
    """The same model at other sizes than the largest, where no file holds it that could be read again."""
    has_lines: bool = False
    """Whether locations are lines of a person's program, which its text keeps."""
