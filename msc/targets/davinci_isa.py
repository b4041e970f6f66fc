"""The instructions of a DaVinci core as one table: name, pipe, operands, parameters and their limits.

The `davinci` dialect, the C generated of it, the header that this C includes and the simulator all follow the table.
Names are CCE's; what CCE packs into configuration words is a parameter each. Lengths, strides and gaps count
blocks of 32 bytes unless the parameter's note says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum


class Pipe(IntEnum):
    """The queues of a core; instructions of one run in order, those of two at the same time. ALL is for barriers."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6
    ALL = 7


class Space(IntEnum):
    """Memories, by CCE's names: gm, cbuf (L1), ca (L0A), cb (L0B), cc (L0C), ub, bt and fb (the tables)."""

    gm = 0
    cbuf = 1
    ca = 2
    cb = 3
    cc = 4
    ub = 5
    bt = 6
    fb = 7


DTYPES: Mapping[str, int] = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "ui8": 1, "i16": 2, "i32": 4, "ui32": 4}
"""Element types by MLIR's names -> bytes; their order is the number that instructions carry."""

MOST_REPEATS, MOST_BURSTS, MOST_STRIDE = 255, 4095, 255
"""The largest values of fields of instructions: repeats, bursts of a move, blocks from one repeat to the next."""

BLOCK_BYTES = 32
"""What UB is read and written in."""
LANE_ELEMENTS = 128
"""Elements of two bytes in a repeat: rows of UB that are a multiple of it have whole repeats in every type."""

FRACTAL = 16
"""Rows of a fractal, and columns of two bytes."""
LOAD3D_STRIDE, LOAD3D_REACH, LOAD3D_SIZE, LOAD3D_POSITIONS = 63, 255, 32767, 16383
"""The largest values of fields of load3d: strides, dilations and pads, sides of an image, pixels of one load."""
PACKETS = 3
"""Packets of an operand that L1 holds: each has an event of its own, and a pair of queues has eight."""

ELEMENTS: Mapping[str, str] = {"i1": "ui8", **{name: name for name in DTYPES}}
"""The element types of tensors that cores know, and how these call them: a boolean is a byte."""

WORDS: Mapping[str, int] = {"i8": 1, "i16": 1, "i32": 1, "i64": 2}
"""The element types of indices, and their words: an i64 lies in global memory as two i32."""

C_TYPES: Mapping[str, str] = {
    "f16": "half",
    "bf16": "bfloat16_t",
    "f32": "float",
    "i8": "int8_t",
    "ui8": "uint8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "ui32": "uint32_t",
}
"""The types of generated C."""


CORE_OF: Mapping[Space, str] = {
    **dict.fromkeys((Space.cbuf, Space.ca, Space.cb, Space.cc, Space.bt, Space.fb), "cube"),
    Space.ub: "vector",
}
"""The kind of core that has a memory, where cube and vector cores are separate; both reach global memory."""

Types = tuple[str, ...]
"""An element type for each operand."""


@dataclass(frozen=True)
class InstructionParameter:
    """A number of an instruction: its least and greatest value, and what it is when left out (None: never left out).

    `bits` are 64 bits, a literal with or without a sign.
    """

    name: str
    least: int = 0
    most: int = 65535
    default: int | None = None
    real: bool = False
    bits: bool = False


@dataclass(frozen=True)
class Instruction:
    """A queue instruction. The first operand is what it writes; `reads_first` says that it reads it as well."""

    name: str
    pipe: Pipe
    spaces: tuple[Space, ...]
    parameters: tuple[InstructionParameter, ...]
    note: str
    rate: str = ""
    reads_first: bool = False
    feature: str = ""
    types: tuple[Types, ...] = ()

    @property
    def core(self) -> str:
        """The kind of core that has it, where cores are separate: that of what it reads on chip; "" for both."""
        if self.pipe is Pipe.V:
            return "vector"
        return next((CORE_OF[space] for space in reversed(self.spaces) if space in CORE_OF), "")

    def parameter(self, name: str) -> int:
        """The position of a parameter."""
        return [p.name for p in self.parameters].index(name)


def _p(text: str) -> tuple[InstructionParameter, ...]:
    """`name`, `name=default`, each with an optional `<most` or `>least`, by spaces."""
    made: list[InstructionParameter] = []
    for word in text.split():
        word, _, most = word.partition("<")
        word, _, least = word.partition(">")
        name, _, default = word.partition("=")
        made.append(InstructionParameter(name, int(least or 0), int(most or 65535), int(default) if default else None))
    return tuple(made)


_MOVE = "bursts<4095 length<65535 src_gap=0<65535 dst_gap=0<65535"
_ALIGN = "bursts<4095 length<2097151 src_gap=0<2147483647 dst_gap=0<65535"
_ALIGN_OUT = "bursts<4095 length<2097151 src_gap=0<65535 dst_gap=0<2147483647"
_LOAD2D = "repeat<255 src_stride=1<65535 dst_stride=1<65535 transpose=0<1 src_gap=0<65535 dst_gap=0<65535"
_LOAD2D_NOTE = (
    "fractals of 512 B; transposed, squares of 16 x 16 or, of bytes, 32 x 32: two fractals each, src_gap and dst_gap "
    "apart, unless elements have two bytes"
)
_LOAD3D = (
    "h>1<32767 w>1<32767 c>1<65535 pad_left=0<255 pad_right=0<255 pad_top=0<255 pad_bottom=0<255 stride_w=1>1<63 "
    "stride_h=1>1<63 filter_w=1>1<255 filter_h=1>1<255 dilation_w=1>1<255 dilation_h=1>1<255 k_extension<65535 "
    "m_extension<65535 k_start=0<65535 m_start=0<65535 pad_value=0<255"
)
_MAD = "m<4095 k<4095 n<4095 accumulate=0<2147483647 unit_flag=0<3 k_align=0<1"
_FIX = "n<4095 m<65535 dst_stride<2147483647 src_stride<65535 relu=0<1 unit_flag=0<3 nd=1<1"
_QUANTISED = _FIX + " offset=0>-256<255"
_UNARY = "repeat<255 dst_block_stride=1 src_block_stride=1 dst_repeat_stride=8<255 src_repeat_stride=8<255"
_BINARY = (
    "repeat<255 dst_block_stride=1 src0_block_stride=1 src1_block_stride=1 "
    "dst_repeat_stride=8<255 src0_repeat_stride=8<255 src1_repeat_stride=8<255"
)
_SCALAR = (InstructionParameter("scalar", real=True),)
_MASK = tuple(InstructionParameter(name, -(1 << 63), (1 << 64) - 1, -1, bits=True) for name in ("high", "low"))
REDUCE = _p("repeat<255 dst_repeat_stride=1<65535 src_block_stride=1 src_repeat_stride=8<255")
"""The parameters of instructions that make one element of several."""


def _same(names: str, operands: int) -> tuple[Types, ...]:
    """All operands of one type, each of these."""
    return tuple((name,) * operands for name in names.split())


def _types(text: str) -> tuple[Types, ...]:
    """`f32,f16 i32,i8`: what each operand may be, results first."""
    return tuple(tuple(word.split(",")) for word in text.split())


_ANY = " ".join(DTYPES)
_REAL = "f16 f32"
_NUMBERS = "f16 i16 f32 i32"
_WIDENING = "f16,f16 f32,f32 f32,f16"
"""A sum of f32 takes f16, too."""
_VECTOR_TYPES: Mapping[str, tuple[Types, ...]] = {
    **{f"v{name}": _same(_NUMBERS, 3) for name in ("add", "sub", "mul", "max", "min")},
    **{f"v{name}": _same("i16", 3) for name in ("and", "or")},
    "vnot": _same("i16", 2),
    "vdiv": _same(_REAL, 3),
    "vaddrelu": _same("f16 i16 f32", 3),
    "vmla": _types("f16,f16,f16 f32,f32,f32 f32,f16,f16"),
    "vmadd": _same(_REAL, 3),
    **{f"v{name}": _same(_REAL, 2) for name in ("exp", "ln", "abs", "rec", "rsqrt", "sqrt", "lrelu")},
    "vrelu": _same("f16 f32 i32", 2),
    "vconv": _types(
        "f16,f32 f32,f32 bf16,f32 i32,f32 i16,f32 f32,f16 i32,f16 i16,f16 i8,f16 ui8,f16 f32,bf16 i32,bf16 f16,i8 "
        "f16,ui8 f16,i16 f32,i16 f32,i32 i16,i32 f16,i32"
    ),
    **{f"v{name}": _same(_NUMBERS, 2) for name in ("adds", "muls", "maxs", "mins")},
    "vaxpy": _types(_WIDENING),
    "vector_dup": _same("f16 bf16 i16 f32 i32 ui32", 1),
    "vcmp": _types("ui8,f16,f16 ui8,f32,f32 ui8,i32,i32"),
    "vsel": _types("f16,f16,f16,ui8 f32,f32,f32,ui8"),
    **{f"vc{name}": _same(_REAL, 2) for name in ("add", "max", "min", "gadd", "gmax", "gmin", "padd")},
    "vbrcb": _same("f16 bf16 i16 f32 i32 ui32", 2),
    "vgather": _types(
        " ".join(
            f"{name},{name},{offset}" for name in "f16 bf16 i16 f32 i32 ui32".split() for offset in ("ui32", "i32")
        )
    ),
    "vtranspose": _same("f16 bf16 i16", 2),
}
"""The element types of vector instructions, as the vendor's interfaces of the vector unit list them."""

_FIXPIPE = "f32,f32 f16,f32 bf16,f32 i32,i32"
_SCALED = "f16,i32 i8,i32 ui8,i32 i8,f32 ui8,f32"
_TYPES: Mapping[str, tuple[Types, ...]] = {
    "copy_cbuf_to_bt": _types("f32,f32 i32,i32 f32,f16 f32,bf16"),
    "copy_matrix_cc_to_gm": _types(_FIXPIPE),
    "copy_matrix_cc_to_gm_quant": _types(_SCALED),
    "copy_matrix_cc_to_cbuf": _types(f"{_FIXPIPE} {_SCALED}"),
    "copy_matrix_cc_to_ubuf": _types(_FIXPIPE),
    "mad": _types("f32,f16,f16 f32,bf16,bf16 f32,f32,f32 i32,i8,i8 i32,ui8,ui8 i32,ui8,i8 i32,i8,ui8"),
    "mad_bias": _types("f32,f16,f16,f32 f32,bf16,bf16,f32 f32,f32,f32,f32 i32,i8,i8,i32 i32,ui8,i8,i32"),
    **_VECTOR_TYPES,
}
"""The element types of all instructions that compute or convert; what only moves bytes takes one type, any."""


def _typed(row: Instruction) -> Instruction:
    return replace(row, types=_TYPES.get(row.name, _same(_ANY, len(row.spaces)) if row.spaces else ()))


def _vector() -> list[Instruction]:
    """The vector unit: operands in UB, 256 bytes a repeat, under the mask that was set last."""
    v, ub = Pipe.V, Space.ub
    made: list[Instruction] = []
    for name in ("add", "sub", "mul", "div", "max", "min", "and", "or"):
        made.append(Instruction(f"v{name}", v, (ub, ub, ub), _p(_BINARY), f"dst = src0 {name} src1", name))
    made += [
        Instruction("vaddrelu", v, (ub, ub, ub), _p(_BINARY), "dst = max(src0 + src1, 0)", "addrelu"),
        Instruction("vmla", v, (ub, ub, ub), _p(_BINARY), "dst += src0 * src1", "mla", reads_first=True),
        Instruction("vmadd", v, (ub, ub, ub), _p(_BINARY), "dst = dst * src0 + src1", "madd", reads_first=True),
    ]
    for name in ("exp", "ln", "abs", "rec", "rsqrt", "sqrt", "relu", "not"):
        made.append(Instruction(f"v{name}", v, (ub, ub), _p(_UNARY), f"dst = {name}(src)", name))
    made.append(Instruction("vconv", v, (ub, ub), _p(_UNARY), "dst = src in dst's type, rounded to even", "conv"))
    for name, note in (("adds", "src + scalar"), ("muls", "src * scalar"), ("maxs", "max(src, scalar)")):
        made.append(Instruction(f"v{name}", v, (ub, ub), (*_SCALAR, *_p(_UNARY)), f"dst = {note}", name))
    made += [
        Instruction("vmins", v, (ub, ub), (*_SCALAR, *_p(_UNARY)), "dst = min(src, scalar)", "mins"),
        Instruction("vlrelu", v, (ub, ub), (*_SCALAR, *_p(_UNARY)), "dst = src < 0 ? src * scalar : src", "lrelu"),
        Instruction("vaxpy", v, (ub, ub), (*_SCALAR, *_p(_UNARY)), "dst += src * scalar", "axpy", reads_first=True),
        Instruction(
            "vector_dup",
            v,
            (ub,),
            (*_SCALAR, *_p("repeat<255 dst_block_stride=1 dst_repeat_stride=8<255")),
            "dst = scalar",
            "dup",
        ),
        Instruction("vcmp", v, (ub, ub, ub), _p("compare=0<5 " + _BINARY), "bits of src0 <compare> src1", "cmp"),
        Instruction("vsel", v, (ub, ub, ub, ub), _p(_BINARY), "dst = bit of src2 ? src0 : src1", "sel"),
    ]
    for name, note in (("cadd", "sum"), ("cmax", "maximum"), ("cmin", "minimum")):
        made.append(Instruction(f"v{name}", v, (ub, ub), REDUCE, f"the {note} of each repeat, one element", name))
    for name, note in (("cgadd", "sum"), ("cgmax", "maximum"), ("cgmin", "minimum")):
        made.append(Instruction(f"v{name}", v, (ub, ub), REDUCE, f"the {note} of each block of 32 B", name))
    made += [
        Instruction("vcpadd", v, (ub, ub), REDUCE, "the sum of each pair of neighbours", "cpadd"),
        Instruction(
            "vbrcb", v, (ub, ub), _p("repeat<255 dst_block_stride=1 dst_repeat_stride=8<255"), "8 blocks of 8 elements",
            "brcb",
        ),
        Instruction(
            "vgather", v, (ub, ub, ub), _p("count<65535 src_length<262144"), "src at offset src1, below src_length",
            "gather",
        ),
        Instruction("vtranspose", v, (ub, ub), (), "a 16 x 16 matrix of two-byte elements transposed", "transpose"),
        Instruction("copy_ubuf_to_ubuf", v, (ub, ub), _p(_MOVE), "blocks within UB"),
        Instruction("set_vector_mask", v, (), _MASK, "which elements of a repeat count"),
        Instruction("set_mask_count", v, (), _p("count<2147483647"), "how many elements count, over all repeats"),
        Instruction("set_mask_norm", v, (), (), "back to the mask of a repeat"),
    ]  # fmt: skip
    return made


def _moves() -> list[Instruction]:
    """Moves between memories."""
    s = Space
    return [
        Instruction("copy_gm_to_cbuf", Pipe.MTE2, (s.cbuf, s.gm), _p(_MOVE), "blocks of 32 B"),
        Instruction(
            "copy_gm_to_cbuf_multi_nd2nz",
            Pipe.MTE2,
            (s.cbuf, s.gm),
            _p("n<16384 d<65535 src_stride<2147483647 dst_stride<16384"),
            "n rows of d elements, src_stride elements apart, to columns of 32 B that are dst_stride rows high",
            feature="nd2nz",
        ),
        Instruction("load_gm_to_ca", Pipe.MTE2, (s.ca, s.gm), _p(_LOAD2D), "fractals of 512 B"),
        Instruction("load_gm_to_cb", Pipe.MTE2, (s.cb, s.gm), _p(_LOAD2D), "fractals of 512 B"),
        Instruction(
            "copy_gm_to_ubuf", Pipe.MTE2, (s.ub, s.gm), _p(_MOVE + " bypass=0<1"), "blocks of 32 B; bypass: not into L2"
        ),
        Instruction(
            "copy_gm_to_ubuf_align",
            Pipe.MTE2,
            (s.ub, s.gm),
            _p(_ALIGN + " bypass=0<1"),
            "bursts of length bytes, src_gap bytes apart; the rest of a block becomes zero",
        ),
        Instruction("load_cbuf_to_ca", Pipe.MTE1, (s.ca, s.cbuf), _p(_LOAD2D), _LOAD2D_NOTE),
        Instruction("load_cbuf_to_cb", Pipe.MTE1, (s.cb, s.cbuf), _p(_LOAD2D), _LOAD2D_NOTE),
        Instruction(
            "img2colv2_cbuf_to_ca",
            Pipe.MTE1,
            (s.ca, s.cbuf),
            _p(_LOAD3D),
            "load3d: C1HWC0 windows as rows; pad_value: each byte outside",
        ),
        Instruction(
            "img2colv2_cbuf_to_cb",
            Pipe.MTE1,
            (s.cb, s.cbuf),
            _p(_LOAD3D),
            "load3d: C1HWC0 windows as rows; pad_value: each byte outside",
        ),
        Instruction(
            "copy_cbuf_to_bt",
            Pipe.MTE1,
            (s.bt, s.cbuf),
            _p("length<65535"),
            "length blocks of 32 B of L1; f16 and bf16 become f32",
        ),
        Instruction("copy_cbuf_to_fbuf", Pipe.FIX, (s.fb, s.cbuf), _p("length<65535"), "length blocks of 32 B"),
        Instruction(
            "copy_matrix_cc_to_gm",
            Pipe.FIX,
            (s.gm, s.cc),
            _p(_FIX),
            "m x n of L0C, columns of 16 that are src_stride rows high, to rows dst_stride elements apart",
            feature="fixpipe_to_gm",
        ),
        Instruction(
            "copy_matrix_cc_to_gm_quant",
            Pipe.FIX,
            (s.gm, s.cc),
            (*_p(_QUANTISED), InstructionParameter("scale", real=True)),
            "as to gm, of sums times scale: i32 to f16; i32 or f32 to bytes, rounded to even, offset added, saturated",
            feature="fixpipe_to_gm",
        ),
        Instruction("copy_matrix_cc_to_cbuf", Pipe.FIX, (s.cbuf, s.cc), _p(_FIX), "as to gm, in fractals (nd=0)"),
        Instruction(
            "copy_matrix_cc_to_ubuf",
            Pipe.FIX,
            (s.ub, s.cc),
            _p(_FIX),
            "as to gm, to UB: its own, or half of the rows to each vector core of the block",
            feature="fixpipe_to_ub",
        ),
        Instruction("copy_ubuf_to_gm", Pipe.MTE3, (s.gm, s.ub), _p(_MOVE), "blocks of 32 B"),
        Instruction(
            "copy_ubuf_to_gm_align",
            Pipe.MTE3,
            (s.gm, s.ub),
            _p(_ALIGN_OUT),
            "bursts of bytes, dst_gap bytes apart",
        ),
        Instruction("copy_ubuf_to_cbuf", Pipe.MTE3, (s.cbuf, s.ub), _p(_MOVE), "blocks of 32 B", feature="ub_to_l1"),
    ]


def _cube() -> list[Instruction]:
    s = Space
    note = "cc = (accumulate ? cc : 0) + ca * cb; unit_flag 3 signals each finished fractal to the Fixpipe"
    return [
        Instruction("mad", Pipe.M, (s.cc, s.ca, s.cb), _p(_MAD), note),
        Instruction("mad_bias", Pipe.M, (s.cc, s.ca, s.cb, s.bt), _p(_MAD), "cc = bias + ca * cb"),
    ]


def _scalar() -> list[Instruction]:
    return [
        Instruction("scalar_work", Pipe.S, (), _p("cycles<1125899906842624"), "the scalar unit computes for so long")
    ]


INSTRUCTIONS: Mapping[str, Instruction] = {i.name: _typed(i) for i in (*_moves(), *_cube(), *_vector(), *_scalar())}
"""Every queue instruction by name, in the order of its number."""

CONTROL = ("set_flag", "wait_flag", "pipe_barrier", "ffts_cross_core_sync", "wait_flag_dev", "load_index")
"""Numbered behind the table's: the instructions that order others, and the scalar unit's load of an index."""


def number(name: str) -> int:
    """The number that an instruction has in the simulator."""
    return (*INSTRUCTIONS, *CONTROL).index(name)
