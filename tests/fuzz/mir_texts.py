"""`.mir` texts of every stage: those of the lit tests and samples, damaged in tokens or bytes, parsed and verified."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import numpy as np
from xdsl.printer import Printer

from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import Diagnostic, MscError

ROOT = Path(__file__).parents[2]
MAXIMUM_SEED_BYTES = 1 << 12

Random = np.random.Generator

_TOKEN = re.compile(r"\s+|[@%#!^]?[\w.$]+|\"[^\"\n]*\"|.", re.DOTALL)
_WORDS = (
    *("0", "-1", "?", "1099511627776", "99999999999999999999", "nan", "0x7f", "1e400", "dense<", "tensor<", "memref<"),
    *("vector<", "affine_map<", "{", "}", "(", ")", "[", "]", "<", ">", ":", "->", "=", ",", '"', "%0", "@main", "#0"),
    *("f32", "i1", "i64", "index", "ms.add", "scf.for", "gk.kernel", "loop.for", "ms.constant", "!x", "//", "loc("),
)


class MirTexts:
    """The target `mir`."""

    def seeds(self) -> Iterator[bytes]:
        """The cases of all files of the tests and samples, without the comments that check them."""
        for file in sorted((*ROOT.glob("tests/**/*.mir"), *ROOT.glob("samples/**/*.mir"))):
            for case in re.split(r"^// -----.*$", file.read_text("utf-8"), flags=re.MULTILINE):
                data = re.sub(r"^\s*//.*\n", "", case, flags=re.MULTILINE).encode()
                if 0 < len(data) <= MAXIMUM_SEED_BYTES:
                    yield data

    def run(self, data: bytes) -> str:
        """Parse, verify, print."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise MscError(Diagnostic("MSC0003", "not text")) from error
        module = parse_module(new_context(), text, "model.mir")
        verify_module(module)
        Printer(StringIO()).print_op(module)
        return "module"

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """Mostly token by token."""
        tokens: list[str] = _TOKEN.findall(data.decode("utf-8", "replace"))
        if not tokens or random.random() < 0.3:
            return mutate(data)
        for _ in range(int(random.integers(1, 4))):
            _damage(tokens, random)
        return "".join(tokens).encode("utf-8", "replace")


def _damage(tokens: list[str], random: Random) -> None:
    """A token goes, comes twice, becomes another of the text or of `_WORDS`; or a run of tokens comes again."""
    if not tokens:
        return
    at, other = int(random.integers(len(tokens))), int(random.integers(len(tokens)))
    match int(random.integers(5)):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[at])
        case 2:
            tokens[at] = tokens[other]
        case 3:
            tokens[at] = _WORDS[int(random.integers(len(_WORDS)))]
        case _:
            tokens[at:at] = tokens[other : other + int(random.integers(1, 30))]
