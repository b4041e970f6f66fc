"""Weights as bytes: one file in the layout that generated C expects, and the assembler text that links it in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

from msc.runtime.program import CProgram, WeightSlot
from msc.support.diagnostics import Diagnostic, MscError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

_CHUNK = 1 << 24


def write_weights(program: CProgram, arrays: Arrays, file: BinaryIO) -> None:
    """Write the weights in their layout, gaps as zeros. `arrays` maps parameters to data of the slot's size.

    Raises MSC0505 when one is missing or of another size.
    """
    position = 0
    for slot in sorted(program.weights, key=lambda s: s.offset):
        data = _bytes(slot, arrays)
        _pad(file, slot.offset - position)
        for start in range(0, len(data), _CHUNK):
            file.write(data[start : start + _CHUNK])
        position = slot.offset + len(data)
    _pad(file, program.signature.weights_bytes - position)


def _pad(file: BinaryIO, count: int) -> None:
    if count < 0:
        raise MscError(Diagnostic("MSC0505", "the weights overlap or exceed their layout"))
    file.write(bytes(count))


def _bytes(slot: WeightSlot, arrays: Arrays) -> memoryview:
    import numpy as np

    array = arrays.get(slot.symbol)
    if array is None or array.nbytes != slot.bytes:
        got = "no data" if array is None else f"{array.nbytes} bytes"
        message = f"parameter '{slot.symbol}' needs {slot.bytes} bytes ({slot.dtype} {list(slot.shape)}), got {got}"
        raise MscError(Diagnostic("MSC0505", message))
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


_ASSEMBLY = """/* The weights of {name}: the bytes of {name}_weights.bin, read-only, in ELF and Mach-O. */
#if defined(__APPLE__)
    .section __TEXT,__const
    .p2align 6
    .globl _{name}_weights
_{name}_weights:
    .incbin "{name}_weights.bin"
#else
    .section .rodata
    .balign 64
    .globl {name}_weights
    .type {name}_weights, %object
{name}_weights:
    .incbin "{name}_weights.bin"
    .size {name}_weights, . - {name}_weights
    .section .note.GNU-stack, "", %progbits
#endif
"""


def weights_assembly(program: CProgram) -> str:
    """The text of `<name>_weights.S`, which the C compiler assembles; it finds the bytes beside itself."""
    return _ASSEMBLY.format(name=program.name)
