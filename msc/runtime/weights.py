"""Weights as bytes: one file in the layout that generated C expects, and the assembler text that links it in."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from msc.runtime.program import CProgram, WeightSlot
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.folder_outputs import Writable
from msc.support.marks import is_marked
from msc.support.plain_files import content

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

_CHUNK = 1 << 24
_LARGEST_TEXT = 1 << 20


def write_weights(program: CProgram, arrays: Arrays, file: Writable) -> None:
    """Write the weights in their layout, gaps as zeros. `arrays` maps parameters to data of the slot's size.

    Raises MSC0505 when one is missing or of another size.
    """
    position = 0
    # A weight of no elements takes the offset of the one after it.
    for slot in sorted(program.weights, key=lambda s: (s.offset, s.bytes)):
        data = _bytes(slot, arrays)
        _pad(file, slot.offset - position)
        for start in range(0, len(data), _CHUNK):
            file.write(data[start : start + _CHUNK])
        position = slot.offset + len(data)
    _pad(file, program.signature.weights_bytes - position)


def _pad(file: Writable, count: int) -> None:
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


_MARK = sha256(b"room for the weights of a model").digest()
"""Around the room. No text of a model has these bytes, as there are some beyond ASCII among them."""

_ROOM = """/* Room for the weights, which the linker leaves empty; before it a mark and how far it is from there,
   behind it the mark. */
    .section .rodata
    .balign 8
    .byte {mark}
.Lhere:
    .quad .Lroom - .Lhere
    .section .rodata.room, "a", %nobits
    .balign 64
    .globl {name}_weights
    .type {name}_weights, %object
{name}_weights:
.Lroom:
    .skip {bytes}
    .size {name}_weights, . - {name}_weights
    .section .rodata.room_end, "a", %progbits
    .byte {mark}
    .section .note.GNU-stack, "", %progbits
"""


def room_assembly(program: CProgram) -> str:
    """In the place of `weights_assembly`: with it, neither assembler nor linker reads and writes the weights."""
    mark = ", ".join(map(str, _MARK))
    return _ROOM.format(mark=mark, name=program.name, bytes=program.signature.weights_bytes)


def fill_room(linked: Path, program: CProgram, arrays: Arrays) -> bool:
    """Write the weights to their room in a linked file. False where the linker left none: not all of them do.

    Raises MSC0505.
    """
    with linked.open("r+b") as file:
        with mmap(file.fileno(), 0, access=ACCESS_READ) as text:
            here = text.find(_MARK) + len(_MARK)
            room = here + int.from_bytes(text[here : here + 8], "little", signed=True)
            end = room + program.signature.weights_bytes
            fits = len(_MARK) <= here < room and text[end : end + len(_MARK)] == _MARK
        if fits:
            file.seek(room)
            write_weights(program, arrays, file)
        return fits


_ASSEMBLY = """/* The weights of {name}: the {bytes} bytes of {name}_weights.S.bin, read-only, in ELF and Mach-O.
   That file lies beside this one, wherever the compiler runs: its path is this file's with .bin added. */
.macro embed_beside source
    .incbin "\\source\\().bin"
.endm

#if defined(__APPLE__)
    .section __TEXT,__const
    .p2align 6
    .globl _{name}_weights
_{name}_weights:
    embed_beside __FILE__
#else
    .section .rodata
    .balign 64
    .globl {name}_weights
    .type {name}_weights, %object
{name}_weights:
    embed_beside __FILE__
    .size {name}_weights, . - {name}_weights
    .section .note.GNU-stack, "", %progbits
#endif
"""


def weights_assembly(program: CProgram) -> str:
    """The text of `<name>_weights.S`, which the C compiler assembles from any folder.

    It finds the bytes beside itself: a macro's argument loses its quotes, so `__FILE__` becomes part of a path.
    """
    return _ASSEMBLY.format(name=program.name, bytes=program.signature.weights_bytes)


def assembly_name(name: str) -> str:
    """The name of the assembler text of a program's weights."""
    return f"{name}_weights.S"


def bytes_name(name: str) -> str:
    """The name of the file with the bytes, which must be the text's with an ending."""
    return f"{assembly_name(name)}.bin"


def is_weights_file(path: Path) -> bool:
    """Whether a file is the `<name>_weights.S.bin` that the `<name>_weights.S` beside it names. Raises OSError."""
    text = path.with_suffix("")
    if not is_marked(text):
        return False
    said = content(text, _LARGEST_TEXT).decode("utf-8", "replace")
    return f" the {path.stat().st_size} bytes of {path.name}," in said
