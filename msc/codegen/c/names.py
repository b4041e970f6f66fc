"""Names in C: identifiers of our own making."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from msc.support.naming import unique

_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual
    asm and and_eq bitand bitor catch class compl const_cast delete dynamic_cast explicit export friend mutable
    namespace new not not_eq operator or or_eq private protected public reinterpret_cast static_cast template this
    throw try typeid typename using virtual wchar_t xor xor_eq
"""
_LIBRARY = """
    NULL INFINITY NAN main memcpy memset errno stdin stdout stderr signbit isnan isinf unix linux i386 near far I
    fabs fabsf fma fmaf sqrt sqrtf exp log pow sin cos tan floor ceil trunc rint rintf copysign copysignf abs labs
    y0 y1 yn j0 j1 jn gamma lgamma index
"""
RESERVED = frozenset((_KEYWORDS + _LIBRARY).split())
"""C and C++ keywords, and names of the C library that a local variable would hide."""

SYSTEM = frozenset(
    """access alarm brk clock close execl fork getpid isatty kill link lseek nice pause pipe raise read rmdir sbrk
    select signal sleep swab sync time truncate unlink usleep write""".split()
)
"""Names that headers of the system declare, so that no kernel may bear them."""

_FILES = ("artifact", "artifact_calls", "main", "selftest", "tensor", "model_table", "manifest", "golden", "README")
"""Files of ours that stand beside those of a model, which bear its name."""
_MAXIMUM_LENGTH = 48
_OUR_PREFIX = re.compile(r"(msc|load|store|splat|select|[a-z]+[0-9]+x[0-9]+)(_|$)")


def identifier(text: str, default: str = "v") -> str:
    """`text` as a C identifier: ASCII, not a keyword, not a name that generated code uses itself."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:_MAXIMUM_LENGTH].rstrip("_")
    if not name:
        return default
    if name[0].isdigit():
        name = f"{default}{name}"
    return f"{name}_" if name in RESERVED or (name.isupper() and len(name) > 3) or _OUR_PREFIX.match(name) else name


def module_identifier(text: str) -> str:
    """The prefix of a model's exported symbols: a C identifier, "model" if nothing of `text` is left."""
    name = identifier(text, "model")
    return f"{name}_" if name in _FILES else name


@dataclass
class NameScope:
    """Names visible at a point of a function: blocks nest, siblings may use a name again."""

    frames: list[set[str]] = field(default_factory=lambda: [set[str]()])

    def fresh(self, hint: str, default: str = "v") -> str:
        """A new name like `hint`, visible until the block ends."""
        name = unique(identifier(hint, default), set[str]().union(*self.frames))
        self.frames[-1].add(name)
        return name

    def enter(self) -> None:
        self.frames.append(set())

    def leave(self) -> None:
        self.frames.pop()
