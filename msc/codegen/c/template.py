"""Templates of inline C functions over a type.

`{v}` is the type, `{e}` its element in memory, `{n}` its lanes, `{bits}` the bits of an element; `{i}` and `{u}` the
signed and unsigned integer types of the same shape (masks are `{i}`), `{r}` the floating-point one, `{ue}` the unsigned
element, `{h}` the vector of half the lanes; `{s}` is s or d, as x86 names precisions; `{f}` ends the function's own
name, `{hf}` that for the half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msc.codegen.c.types import CType, memory_name


@dataclass(frozen=True)
class Template:
    """C text over a type; `requires` are other templates that it names at the same type, `requires_half` at half.

    `variants` replace the text at some numbers of lanes, 0 being the scalar; `types` are further element types whose
    vectors of the same lanes the text names. A text may be a function of the type.
    """

    text: str | Callable[[CType], str]
    requires: tuple[str, ...] = ()
    requires_half: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    variants: Mapping[int, str] = field(default_factory=dict[int, str])
    types: tuple[str, ...] = ()

    def text_for(self, type_: CType) -> str:
        """The template's text for a type."""
        text = self.variants.get(type_.lanes, self.text)
        return text if isinstance(text, str) else text(type_)

    def instantiate(self, type_: CType) -> str:
        """The text for a type."""
        text = self.text_for(type_)
        for mark, replacement in _substitutions(type_):
            text = text.replace(mark, replacement)
        return text.strip("\n") + "\n"


def _substitutions(type_: CType) -> list[tuple[str, str]]:
    half, lanes = CType(type_.base, type_.lanes // 2), type_.lanes
    lanes_from = ", ".join(f"p[{k} * stride]" for k in range(lanes))
    part_from = ", ".join(f"count > {k} ? p[{k} * stride] : 0" for k in range(lanes))
    stores = (f"    if (count > {k})\n        p[{k} * stride] = v[{k}];" for k in range(lanes))
    low, high = _list(range(lanes // 2)), _list(range(lanes // 2, lanes))
    even = _list([*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)])
    both = [k for lane in range(lanes) for k in (lane, lanes + lane)]
    zipped = _list(both)
    scatter = "\n".join(f"    p[{k} * stride] = v[{k}];" for k in range(lanes))
    return [
        ("{v}", type_.name), ("{e}", memory_name(type_.base)), ("{n}", str(lanes)), ("{bits}", str(type_.bits)),
        ("{i}", type_.signed.name), ("{u}", type_.unsigned.name), ("{h}", half.name if lanes > 2 else type_.name),
        ("{r}", f"f{type_.bits}x{lanes}"), ("{f}", type_.name if type_.is_vector else type_.base), ("{hf}", half.name),
        ("{strided_part}", part_from), ("{scatter_part}", "\n".join(stores)),
        ("{strided}", lanes_from), ("{scatter}", scatter), ("{low}", low), ("{high}", high), ("{even}", even),
        ("{zipped}", zipped), ("{zipped_low}", _list(both[:lanes])), ("{zipped_high}", _list(both[lanes:])),
        ("{min}", f"INT{type_.bits}_MIN"), ("{ue}", CType(type_.unsigned.base).name),
        ("{s}", "s" if type_.bits == 32 else "d"),
    ]  # fmt: skip


def _list(numbers: range | list[int]) -> str:
    return ", ".join(str(n) for n in numbers)
