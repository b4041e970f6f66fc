"""The table of importers: domain.

Operator and the opset since which it holds -> the function that writes `ms` for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msc.importers.onnx.values import Slot
from msc.support.families import import_families

if TYPE_CHECKING:
    from msc.importers.onnx.node import Node

Importer: TypeAlias = Callable[["Node"], "Slot | Sequence[Slot]"]

_FAMILIES = (
    "activations",
    "arithmetic",
    "choosing",
    "constants",
    "control",
    "convolution",
    "fused",
    "linear",
    "machine_learning",
    "microsoft",
    "movement",
    "ngrams",
    "normalisation",
    "pooling",
    "quantization",
    "recurrent",
    "reductions",
    "resizing",
    "sampling",
    "scattering",
    "sequences",
    "shapes",
    "signal",
    "training",
    "types",
)
_IMPORTERS: dict[tuple[str, str], dict[int, Importer]] = {}


def importer(*names: str, since: int = 1, domain: str = "") -> Callable[[Importer], Importer]:
    """Declare the importer of operators, from opset `since` of their domain on."""

    def register(function: Importer) -> Importer:
        for name in names:
            versions = _IMPORTERS.setdefault((domain, name), {})
            if versions.setdefault(since, function) is not function:
                raise ValueError(f"{name} has two importers since opset {since}")
        return function

    return register


def importer_of(domain: str, name: str, opset: int) -> Importer | None:
    """The importer of an operator in an opset, or None."""
    _load_families()
    versions = _IMPORTERS.get((domain, name), {})
    fitting = [since for since in versions if since <= opset]
    return versions[max(fitting)] if fitting else None


def operators(domain: str = "") -> Iterator[str]:
    """The operators of a domain that have importers."""
    _load_families()
    return (name for of, name in _IMPORTERS if of == domain)


def _load_families() -> None:
    """Import the modules that declare importers: they declare them with this one."""
    import_families("msc.importers.onnx.operators", _FAMILIES)
