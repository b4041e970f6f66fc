"""What a code generator hands to the runtime: C text, and what a caller must know about it. Knows no IR."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from msc.runtime.units import SplitSource
from msc.targets.machine import Board

FORMAT = 5
"""Version of the signature text inside artifacts; a reader refuses others."""

ALIGNMENT = 64
"""Of workspaces, of the weights, and of every buffer planned inside them, where a machine says nothing else: a cache
line, and the widest vector. What msc allocates itself is aligned to it, and no machine asks for more."""

ELEMENT_BYTES = {
    "i1": 1, "i8": 1, "ui8": 1, "i16": 2, "ui16": 2, "f16": 2, "bf16": 2,
    "i32": 4, "ui32": 4, "f32": 4, "i64": 8, "ui64": 8, "f64": 8,
}  # fmt: skip
"""Bytes of one element of every dtype that a compiled model takes or gives."""


@dataclass(frozen=True)
class SizeSpec:
    """A size that a call decides, from `low` to `high`; `c_name` is its name in the C prototype."""

    name: str
    c_name: str
    low: int
    high: int


@dataclass(frozen=True)
class Bound:
    """The valid part of a dimension: `(sum(coefficients * sizes) + constant) // divisor` elements."""

    coefficients: tuple[int, ...]
    constant: int = 0
    divisor: int = 1

    def at(self, sizes: Sequence[int]) -> int:
        """The number of elements for these sizes."""
        total = sum(c * size for c, size in zip(self.coefficients, sizes, strict=True))
        return (total + self.constant) // self.divisor

    def text(self, names: Sequence[str]) -> str:
        """The number of elements for people, over the sizes' names: `2*n + 1`."""
        terms = [name if c == 1 else f"{c}*{name}" for c, name in zip(self.coefficients, names, strict=True) if c]
        total = " + ".join([*terms, *([str(self.constant)] if self.constant or not terms else [])])
        alone = len(terms) == 1 and not self.constant
        return total if alone and self.divisor == 1 else f"({total})" + (f"//{self.divisor}" * (self.divisor > 1))

    @property
    def size(self) -> int | None:
        """The number of the size that the dimension has, if it is one."""
        plain = sum(self.coefficients) == max(self.coefficients) == 1 and (self.constant, self.divisor) == (0, 1)
        return self.coefficients.index(1) if plain else None


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a model's signature; `c_name` is its name in the C prototype.

    `shape` is that of the largest sizes, by which it lies in memory; dimension k has `bounds[k]` elements if that is
    not None. `whole` says that memory of that shape is needed in any case. `codes` names the type of ml_dtypes whose
    codes the elements are, if they are. `result` is of an input that a call updates: what it holds afterwards is that
    result, counted among all results. Dimension k is dimension `order[k]` of the tensor that people see, if that is
    given: memory holds the transposed tensor. One that is `compact` lies like any array of the call's shape. `indices`
    are the least and the greatest that each element may be: a call looks at them first. `reals` are the scale and the
    zero point of integers that stand for reals, `(integer - zero) * scale`. Of dimension k the first elements are
    meant, as many as the output called `counts[k]` says, if that is given.
    """

    name: str
    c_name: str
    dtype: str
    shape: tuple[int, ...]
    bounds: tuple[Bound | None, ...] = ()
    whole: bool = False
    codes: str = ""
    result: int | None = None
    order: tuple[int, ...] = ()
    indices: tuple[int, int] | None = None
    compact: bool = False
    reals: tuple[float, int] | None = None
    counts: tuple[str, ...] = ()

    @property
    def public_order(self) -> tuple[int, ...]:
        """The order of the dimensions in memory in which people see them."""
        return tuple(self.order.index(k) for k in range(len(self.order)))

    @property
    def public_shape(self) -> tuple[int, ...]:
        """The shape that people see."""
        return tuple(self.shape[k] for k in self.public_order) if self.order else self.shape

    def valid_shape(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The shape that a call with these sizes takes or gives."""
        if not self.bounds:
            return self.shape
        return tuple(n if b is None else b.at(sizes) for n, b in zip(self.shape, self.bounds, strict=True))

    def named_shape(self, names: Sequence[str]) -> tuple[int | str, ...]:
        """The shape, what calls decide as text over the sizes' names, what data decide by the name of the length."""
        bounds, counts = self.bounds or (None,) * len(self.shape), self.counts or ("",) * len(self.shape)
        return tuple(
            count or (n if b is None else b.text(names)) for n, b, count in zip(self.shape, bounds, counts, strict=True)
        )

    @property
    def is_dense(self) -> bool:
        """Whether it lies like any array of the call's shape, whose memory is enough."""
        return self.compact or (not self.whole and not any(self.bounds[1:]))

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True)
class Signature:
    """What an artifact knows of itself: name (a C identifier), tensors in the order of the call, memory, origin.

    `stack_bytes` are what the local arrays of a kernel take at most on the stack of each thread, `features` what
    the code needs of the CPU, by the names of Linux. `operations` is how many, on vectors or elements, a call runs at
    most; None where values decide. `function` is the entry function that this is of, and `suffix` what its C name has
    behind the model's; `others` are those of the artifact's other functions, which share its weights. `structure` is
    the JSON text of how the results are nested, if they are (`msc.runtime.structures`).
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    workspace_bytes: int
    weights_bytes: int
    msc_version: str
    target: str
    threads: int = 1
    sizes: tuple[SizeSpec, ...] = ()
    stack_bytes: int = 0
    features: tuple[str, ...] = ()
    operations: int | None = 0
    function: str = "main"
    suffix: str = "run"
    structure: str | None = None
    others: tuple[Signature, ...] = ()
    alignment: int = ALIGNMENT
    warnings: tuple[str, ...] = ()
    """What users should know of the model, as which kernels are slow and why."""

    @property
    def symbol(self) -> str:
        """The C function."""
        return f"{self.name}_{self.suffix}"

    @property
    def macro(self) -> str:
        """What the names of the macros about this function begin with."""
        return self.name.upper() if self.suffix == "run" else self.symbol.upper()

    @property
    def functions(self) -> tuple[Signature, ...]:
        """All functions: the one that the signature is of first."""
        return (self, *self.others)

    @property
    def results(self) -> tuple[TensorSpec, ...]:
        """What a call gives, in order: outputs, and the inputs that it updates; lengths of outputs are none."""
        results = list(self.outputs)
        for tensor in sorted((t for t in self.inputs if t.result is not None), key=lambda t: t.result or 0):
            results.insert(tensor.result or 0, tensor)
        return tuple(tensor for tensor in results if tensor.name not in self.lengths)

    @property
    def lengths(self) -> frozenset[str]:
        """The names of outputs that say of how many elements others consist."""
        return frozenset(name for tensor in self.outputs for name in tensor.counts if name)

    def to_json(self) -> str:
        """One line of ASCII JSON, the same for the same signature."""
        return json.dumps({"format": FORMAT, **_to_json(self)}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Signature:
        """The inverse of `to_json`. Raises ValueError for anything else."""
        try:
            data = cast(dict[str, object], json.loads(text))
            if data["format"] != FORMAT:
                raise ValueError(
                    f"msc {data['msc']} wrote it, in format {data['format']!r} of signatures; this msc reads {FORMAT}"
                )
            return _signature(data)
        except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ValueError(f"not a signature: {error}") from error


def _to_json(signature: Signature) -> dict[str, object]:
    return {
        "msc": signature.msc_version,
        "target": signature.target,
        "threads": signature.threads,
        "name": signature.name,
        "function": signature.function,
        "suffix": signature.suffix,
        "inputs": [_tensor_to_json(t) for t in signature.inputs],
        "outputs": [_tensor_to_json(t) for t in signature.outputs],
        "sizes": [vars(size) for size in signature.sizes],
        "workspace_bytes": signature.workspace_bytes,
        "weights_bytes": signature.weights_bytes,
        "stack_bytes": signature.stack_bytes,
        "alignment": signature.alignment,
        "features": list(signature.features),
        "operations": signature.operations,
        **({"warnings": list(signature.warnings)} if signature.warnings else {}),
        **({} if signature.structure is None else {"structure": signature.structure}),
        **({"others": [_to_json(other) for other in signature.others]} if signature.others else {}),
    }


def _signature(data: dict[str, object]) -> Signature:
    structure = data.get("structure")
    return Signature(
        name=str(data["name"]),
        inputs=_tensors(data["inputs"]),
        outputs=_tensors(data["outputs"]),
        workspace_bytes=_count(data["workspace_bytes"]),
        weights_bytes=_count(data["weights_bytes"]),
        msc_version=str(data["msc"]),
        target=str(data["target"]),
        threads=_count(data["threads"]),
        sizes=tuple(_size(item) for item in cast(list[dict[str, object]], data["sizes"])),
        stack_bytes=_count(data["stack_bytes"]),
        features=tuple(map(str, cast(list[object], data["features"]))),
        operations=None if data["operations"] is None else _count(data["operations"]),
        function=str(data["function"]),
        suffix=str(data["suffix"]),
        structure=structure if isinstance(structure, str) else None,
        alignment=_count(data["alignment"]),
        others=tuple(_signature(item) for item in cast(list[dict[str, object]], data.get("others", []))),
        warnings=tuple(map(str, cast(list[object], data.get("warnings", [])))),
    )


def _size(data: dict[str, object]) -> SizeSpec:
    return SizeSpec(str(data["name"]), str(data["c_name"]), _count(data["low"]), _count(data["high"]))


def _tensor_to_json(tensor: TensorSpec) -> dict[str, object]:
    bounds = [None if b is None else [*b.coefficients, b.constant, b.divisor] for b in tensor.bounds]
    return {
        **{"name": tensor.name, "c_name": tensor.c_name, "dtype": tensor.dtype, "shape": list(tensor.shape)},
        **({"bounds": bounds, "whole": tensor.whole} if bounds else {}),
        **({"compact": True} if tensor.compact else {}),
        **({"codes": tensor.codes} if tensor.codes else {}),
        **({} if tensor.result is None else {"result": tensor.result}),
        **({"order": list(tensor.order)} if tensor.order else {}),
        **({"indices": list(tensor.indices)} if tensor.indices is not None else {}),
        **({"scale": tensor.reals[0], "zero": tensor.reals[1]} if tensor.reals is not None else {}),
        **({"counts": list(tensor.counts)} if tensor.counts else {}),
    }


def _tensors(data: object) -> tuple[TensorSpec, ...]:
    return tuple(_tensor(item) for item in cast(list[dict[str, object]], data))


def _tensor(data: dict[str, object]) -> TensorSpec:
    dtype = str(data["dtype"])
    if dtype not in ELEMENT_BYTES:
        raise ValueError(f"unknown dtype {dtype!r}")
    shape = tuple(_count(d) for d in cast(list[object], data["shape"]))
    bounds = tuple(_bound(item) for item in cast(list[list[int] | None], data.get("bounds", [])))
    names = str(data["name"]), str(data["c_name"])
    whole, codes = bool(data.get("whole", False)), str(data.get("codes", ""))
    result = None if data.get("result") is None else _count(data["result"])
    order = tuple(_count(axis) for axis in cast(list[object], data.get("order", [])))
    if order and sorted(order) != list(range(len(shape))):
        raise ValueError(f"{list(order)} is no order of {len(shape)} dimensions")
    given = cast(list[int] | None, data.get("indices"))
    indices = None if given is None else (int(given[0]), int(given[1]))
    scale, zero = data.get("scale"), data.get("zero", 0)
    reals = (float(scale), zero) if isinstance(scale, int | float) and isinstance(zero, int) else None
    compact, counts = bool(data.get("compact")), tuple(map(str, cast(list[object], data.get("counts", []))))
    return TensorSpec(*names, dtype, shape, bounds, whole, codes, result, order, indices, compact, reals, counts)


def _bound(data: list[int] | None) -> Bound | None:
    return None if data is None else Bound(tuple(map(int, data[:-2])), int(data[-2]), int(data[-1]))


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
class LinkedCode:
    """C that a program is linked with and that never changes: files by name, compiled with flags of their own."""

    texts: Mapping[str, str]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class MemoryStep:
    """A kernel call, and the tensors of the workspace that are live at it, with their bytes; `bytes` are all of them.

    An input and an output may share some of these.
    """

    kernel: str
    live: tuple[tuple[str, int], ...]
    bytes: int


@dataclass(frozen=True)
class CProgram:
    """Generated C: `<name>.c`, `<name>.h`, the layout of the weights, and the names of its kernels.

    `split` is the same C for several compilers at once. `companions` are headers of its own that it includes, by name,
    and `linked` is what it is linked with. For a machine without an operating system there are `boards` that run it.
    `steps` say what of the workspace is live at each call.
    """

    source: str
    header: str
    signature: Signature
    weights: tuple[WeightSlot, ...]
    kernels: tuple[str, ...]
    march: tuple[str, ...] = ()
    profiled: bool = False
    split: SplitSource | None = None
    companions: Mapping[str, str] = field(default_factory=dict[str, str])
    linked: LinkedCode | None = None
    boards: tuple[Board, ...] = ()
    steps: tuple[MemoryStep, ...] = ()

    @property
    def name(self) -> str:
        """The C identifier that prefixes every exported symbol."""
        return self.signature.name
