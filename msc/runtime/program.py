"""What a code generator hands to the runtime: C text, and what a caller must know about it. Knows no IR."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import cast

FORMAT = 1
"""Version of the signature text inside artifacts; a reader refuses others."""

ALIGNMENT = 64
"""Of workspaces, of the weights, and of every buffer planned inside them: a cache line, and the widest vector."""

ELEMENT_BYTES = {
    "i1": 1, "i8": 1, "ui8": 1, "i16": 2, "ui16": 2, "f16": 2, "bf16": 2,
    "i32": 4, "ui32": 4, "f32": 4, "i64": 8, "ui64": 8, "f64": 8,
}  # fmt: skip
"""Bytes of one element of every dtype that a compiled model takes or gives."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a model's signature; `c_name` is its name in the C prototype."""

    name: str
    c_name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True)
class Signature:
    """What an artifact knows of itself: name (a C identifier), tensors in the order of the call, memory, origin."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    workspace_bytes: int
    weights_bytes: int
    msc_version: str
    target: str
    threads: int = 1

    def to_json(self) -> str:
        """One line of ASCII JSON, the same for the same signature."""
        return json.dumps(
            {
                "format": FORMAT,
                "msc": self.msc_version,
                "target": self.target,
                "threads": self.threads,
                "name": self.name,
                "inputs": [_tensor_to_json(t) for t in self.inputs],
                "outputs": [_tensor_to_json(t) for t in self.outputs],
                "workspace_bytes": self.workspace_bytes,
                "weights_bytes": self.weights_bytes,
                "alignment": ALIGNMENT,
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> Signature:
        """The inverse of `to_json`. Raises ValueError for anything else."""
        try:
            data = cast(dict[str, object], json.loads(text))
            if data["format"] != FORMAT:
                raise ValueError(f"signature format {data['format']!r}, this msc reads {FORMAT}")
            return _signature(data)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a signature: {error}") from error


def _signature(data: dict[str, object]) -> Signature:
    return Signature(
        name=str(data["name"]),
        inputs=_tensors(data["inputs"]),
        outputs=_tensors(data["outputs"]),
        workspace_bytes=_count(data["workspace_bytes"]),
        weights_bytes=_count(data["weights_bytes"]),
        msc_version=str(data["msc"]),
        target=str(data["target"]),
        threads=_count(data["threads"]),
    )


def _tensor_to_json(tensor: TensorSpec) -> dict[str, object]:
    return {"name": tensor.name, "c_name": tensor.c_name, "dtype": tensor.dtype, "shape": list(tensor.shape)}


def _tensors(data: object) -> tuple[TensorSpec, ...]:
    return tuple(_tensor(item) for item in cast(list[dict[str, object]], data))


def _tensor(data: dict[str, object]) -> TensorSpec:
    dtype = str(data["dtype"])
    if dtype not in ELEMENT_BYTES:
        raise ValueError(f"unknown dtype {dtype!r}")
    shape = tuple(_count(d) for d in cast(list[object], data["shape"]))
    return TensorSpec(str(data["name"]), str(data["c_name"]), dtype, shape)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


@dataclass(frozen=True)
class WeightSlot:
    """Where the bytes of a parameter lie in the weights: `symbol` is its name in the IR."""

    symbol: str
    offset: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True)
class CProgram:
    """Generated C: `<name>.c`, `<name>.h`, the layout of the weights, and the names of its kernels."""

    source: str
    header: str
    signature: Signature
    weights: tuple[WeightSlot, ...]
    kernels: tuple[str, ...]
    march: tuple[str, ...] = ()
    profiled: bool = False

    @property
    def name(self) -> str:
        """The C identifier that prefixes every exported symbol."""
        return self.signature.name
