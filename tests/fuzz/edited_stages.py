"""Stage files as a hostile person edits them: control flow of graphs, and loops. Accepted ones run under sanitizers.

Bounds, steps, indices, types, operands and offsets change, lines go, come twice or trade places. What the verifiers
accept becomes C, is built with AddressSanitizer and UndefinedBehaviorSanitizer and runs on extreme inputs: whatever
those see is a fault of the verifiers. A call may take any time; it is ended after `RUN_SECONDS`.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from msc.backends.registry import find_backend
from msc.dialects.arrays import numpy_dtype
from msc.driver.compile import Compilation, compile_read, generate_c, stage_text
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.legality import verify_stage
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.runtime.build import BuildOptions
from tests.fuzz.edited_seeds import GRAPHS
from tests.unit.compiled.processes import process

TABLE = find_backend("cpu").table

RUN_SECONDS = 5
_OPTIONS = CompileOptions(march="x86-64-v3", memory=1 << 28)
_BUILD = BuildOptions(sanitize=True, flags=("-O0",))

Random = np.random.Generator

_NUMBERS = (0, 1, -1, 2, 3, 7, 8, 16, 64, 127, 128, 255, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63), 1 << 70)
_GROUPS: tuple[Sequence[str], ...] = (
    "addi subi muli divsi remsi floordivsi ceildivsi minsi maxsi minui maxui andi ori xori shli shrsi shrui".split(),
    "addf subf mulf divf maximumf minimumf".split(),
    "slt sle sgt sge ult uge eq ne".split(),
    "i1 i8 i16 i32 i64 index f32 f64 f16 ui8".split(),
    "loop.load loop.store loop.prefetch memref.load memref.store".split(),
    "parallel unroll vector".split(),
    "floordiv ceildiv mod".split(),
    "input output size workspace weights".split(),
)
_TYPE = re.compile(r"(?:memref|tensor|vector)<[^<>]*>")
_TOKEN = re.compile(r"-?\d+|%[\w.$]+|[A-Za-z_][\w]*(?:\.[\w]+)*|.", re.DOTALL)


class EditedGraphs:
    """The target `scf`: graphs with control flow."""

    stage = "graph"

    def seeds(self) -> Iterator[bytes]:
        """Small models with every kind of control flow and of access."""
        yield from (text.encode() for text in GRAPHS)

    def run(self, data: bytes) -> str:
        """Verify, compile, and run what is accepted."""
        compilation = _compiled(data.decode("utf-8", "replace"), self.stage)
        return _run(compilation)

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """One edit or two."""
        text = data.decode("utf-8", "replace")
        for _ in range(int(random.integers(1, 3))):
            text = _edited(text, random)
        return text.encode("utf-8", "replace")


class EditedLoops(EditedGraphs):
    """The target `loop`: the loops of those graphs."""

    stage = "loop"

    def seeds(self) -> Iterator[bytes]:
        """What the compiler makes of the graphs."""
        for text in GRAPHS:
            yield stage_text(_compiled(text, "graph")).encode()


def _compiled(text: str, stage: str) -> Compilation:
    context = new_context()
    module = parse_module(context, text, "model.mir")
    verify_module(module)
    verify_stage(module, TABLE[stage], context, {})
    return compile_read(LoadedModel("model.mir", module, TABLE[stage], Path(), {}, context), _OPTIONS)


def _run(compilation: Compilation) -> str:
    """A call of the program with extreme inputs. Raises AssertionError with what the sanitizers say."""
    program = generate_c(compilation)
    random = np.random.default_rng(len(program.source))
    with tempfile.TemporaryDirectory(prefix="msc-fuzz-") as folder:
        parameters = compilation.parameters()
        weights = {slot.symbol: parameters[slot.symbol] for slot in program.weights}
        built = process(program, weights, Path(folder), _BUILD)
        given = [_extreme(t.shape, t.dtype, random) for t in program.signature.inputs]
        sizes = [int(random.integers(s.low, s.high + 1)) for s in program.signature.sizes]
        data = [*(array.tobytes() for array in given), np.array(sizes, np.int64).tobytes()]
        (Path(folder) / "inputs").write_bytes(b"".join(data))
        try:
            result = subprocess.run(
                [str(built.path), "inputs", "outputs"],
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=RUN_SECONDS,
                preexec_fn=_without_limit,
            )
        except subprocess.TimeoutExpired:
            return "a long run"
    assert result.returncode == 0, f"exit status {result.returncode} {result.stderr[:2000]}"
    return "a run"


def _without_limit() -> None:
    """AddressSanitizer reserves terabytes of addresses."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _extreme(shape: tuple[int, ...], dtype: str, random: Random) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Small numbers, and some as large as they come."""
    small = random.integers(-3, 20, shape)
    if dtype == "i1":
        return (small % 2).astype(np.bool_)
    type_ = numpy_dtype(dtype)
    largest = 1e30 if type_.kind not in "iu" else float(np.iinfo(type_).max // 2)
    with np.errstate(invalid="ignore"):
        return np.where(random.random(shape) < 0.2, largest * random.choice([-2, 2], shape), small).astype(type_)


def _edited(text: str, random: Random) -> str:
    """One change that leaves most texts in the grammar."""
    match int(random.integers(8)):
        case 0:
            return _edited_lines(text, random)
        case 1:
            return _edited_type(text, random)
        case _:
            return _edited_tokens(text, random)


def _edited_type(text: str, random: Random) -> str:
    """A type with another number, wherever it stands."""
    types = sorted(set(_TYPE.findall(text)))
    if not types:
        return text
    old = types[int(random.integers(len(types)))]
    return text.replace(old, _edited_tokens(old, random, inside=True))


def _edited_lines(text: str, random: Random) -> str:
    lines = text.split("\n")
    at, other = int(random.integers(len(lines))), int(random.integers(len(lines)))
    match int(random.integers(3)):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other if random.random() < 0.3 else at, lines[at])
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def _edited_tokens(text: str, random: Random, *, inside: bool = False) -> str:
    """A token outside of types, or `inside` of one."""
    tokens: list[str]
    if inside:
        tokens = re.findall(r"\d+|\D+", text)
    else:
        tokens = [t for piece in re.split(f"({_TYPE.pattern})", text) for t in _tokens_of(piece)]
    wanted = _KINDS[int(random.integers(len(_KINDS)))]
    places = [k for k, token in enumerate(tokens) if (inside or wanted(token)) and _alternatives(token, tokens)]
    if not places:
        return text
    at = places[int(random.integers(len(places)))]
    choices = _alternatives(tokens[at], tokens)
    tokens[at] = choices[int(random.integers(len(choices)))]
    return "".join(tokens)


def _tokens_of(piece: str) -> list[str]:
    return [piece] if _TYPE.fullmatch(piece) else _TOKEN.findall(piece)


def _is_number(token: str) -> bool:
    return token.lstrip("-").isdigit()


def _is_value(token: str) -> bool:
    return token.startswith("%")


def _is_word(token: str) -> bool:
    return not _is_number(token) and not _is_value(token)


_KINDS = (_is_number, _is_number, _is_number, _is_word, _is_word, _is_value)
"""What is edited, as often as it stands here: another value is mostly of another type."""


def _alternatives(token: str, tokens: Sequence[str]) -> Sequence[str]:
    """What may stand in the place of a token: another number, another value, another operation of its kind."""
    if _is_number(token):
        value = int(token)
        near = [value - 1, value + 1, value + 2, value * 2, value * 8, -value]
        return [str(n) for n in (*near, *near, *_NUMBERS)]
    if _is_value(token):
        return sorted({t for t in tokens if _is_value(t)} - {token})
    dialect, _, mnemonic = token.rpartition(".")
    for group in _GROUPS:
        if token in group:
            return group
        if mnemonic in group:
            return [f"{dialect}.{name}" for name in group]
    return ()
