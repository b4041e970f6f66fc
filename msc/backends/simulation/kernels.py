"""Kernels of the `davinci` dialect on the simulator: compiled, run, and their faults told in the kernel's own lines."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.printer import Printer

from msc.backends.passes import DIALECTS
from msc.backends.registry import context_with
from msc.dialects.davinci import BufferType, DavinciKernelOp
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import read_source, source_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read_kernels(path: str, target: str | None = None) -> list[DavinciKernelOp]:
    """The kernels of a `.dv.mir` file, verified; for `target` instead of their own if one is named. Raises MscError."""
    text, name = read_source(Path(path)), source_name(path)
    return parse_kernels(text, name, target)


def parse_kernels(text: str, name: str, target: str | None = None) -> list[DavinciKernelOp]:
    """The kernels of a text. Raises MscError, MSC1020 when there is none."""
    from xdsl.dialects.builtin import StringAttr

    module = parse_module(context_with(DIALECTS), text, name)
    kernels = [op for op in module.body.block.ops if isinstance(op, DavinciKernelOp)]
    for kernel in kernels:
        if target is not None:
            kernel.target = StringAttr(target)
    verify_module(module, {name: text})
    if not kernels:
        advice = "a kernel is davinci.kernel @name vector 1 (%x: !davinci.buffer<gm, f16, 64>) { ... }"
        raise MscError(Diagnostic("MSC1020", f"'{name}' holds no davinci.kernel", help=advice))
    return kernels


def kernel_text(kernel: DavinciKernelOp) -> str:
    """A kernel as `.dv.mir` text."""
    out = StringIO()
    Printer(out).print_op(kernel)
    return out.getvalue() + "\n"


def arguments_of(kernel: DavinciKernelOp) -> list[NDArray[np.generic]]:
    """Arrays for a kernel's arguments, filled with the same numbers every time."""
    import ml_dtypes
    import numpy as np

    made: list[NDArray[np.generic]] = []
    random = np.random.default_rng(0)
    for argument in kernel.body.block.args:
        assert isinstance(argument.type, BufferType)
        names = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "ui8": np.uint8}
        names |= {"i16": np.int16, "i32": np.int32, "ui32": np.uint32}
        numbers = random.integers(0, 4, argument.type.elements.data)
        made.append(numbers.astype(names[argument.type.dtype]))
    return made
