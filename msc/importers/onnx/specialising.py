"""Models whose shapes depend on the values of inputs: compiled at the first call with them, and kept for the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from onnx import ModelProto

from msc.dialects.arrays import Array
from msc.importers.onnx.failures import NeedsValues, failure, shown
from msc.importers.onnx.importing import import_proto
from msc.importers.onnx.model import Imported

Run: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""A compiled model: inputs by name to outputs by name."""

Compile: TypeAlias = Callable[[Imported], Run]

MAXIMUM_ELEMENTS = 4096
"""Of an integer or boolean input whose value may decide a shape."""

MAXIMUM_REAL_ELEMENTS = 16
"""Of a float input whose value may: the limits of a range, the scales of a resize."""

MAXIMUM_SPECIALISATIONS = 64
"""The oldest goes when there are more."""

_Key: TypeAlias = tuple[tuple[str, bytes, tuple[int, ...]], ...]


class SpecialisingModel:
    """A model, compiled by `compile` for the shapes of its inputs and the values of those that decide others.

    Which inputs these are is found at the first call. External data lie in `folder`.
    """

    def __init__(
        self, model: ModelProto, compile: Compile, name: str = "model.onnx", folder: Path | None = None
    ) -> None:
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = tuple(info.name for info in model.graph.input if info.name not in constants)
        self.bound: frozenset[str] = frozenset()
        """The inputs whose values decide shapes, as far as calls have shown."""
        self._model = model
        self._name = name
        self._folder = folder
        self._compile = compile
        self._kept: dict[_Key, Run] = {}

    def __call__(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """The outputs by name. Raises MSC0716 if the value of a large input decides a shape."""
        while True:
            try:
                run = self._specialised(inputs)
            except NeedsValues as error:
                new = {n for n in error.inputs if n in inputs} - self.bound
                if not new or not all(_small(inputs[n]) for n in new):
                    raise _undecidable(error, inputs) from error
                self.bound |= new
            else:
                return run({name: array for name, array in inputs.items() if name not in self.bound})

    def _narrowed(self, imported: Imported) -> Run:
        """The compiled model behind arrays of the model's own types."""
        run = self._compile(imported)
        if not imported.narrow:
            return run

        def call(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            types = imported.narrow
            results = run({n: types[n].codes(a) if n in types else a for n, a in inputs.items()})
            return {n: types[n].values(a) if n in types else a for n, a in results.items()}

        return call

    def _specialised(self, inputs: Mapping[str, Array]) -> Run:
        key = self._key(inputs)
        if key not in self._kept:
            if len(self._kept) >= MAXIMUM_SPECIALISATIONS:
                self._kept.pop(next(iter(self._kept)))
            values = {name: inputs[name] for name in sorted(self.bound)}
            shapes = {name: array.shape for name, array in inputs.items() if name not in self.bound}
            sizes = self._sizes(inputs)
            imported = import_proto(
                self._model, self._name, dims=sizes, input_values=values, shapes=shapes, folder=self._folder
            )
            self._kept[key] = self._narrowed(imported)
        return self._kept[key]

    def _key(self, inputs: Mapping[str, Array]) -> _Key:
        return tuple(
            (name, inputs[name].tobytes() if name in self.bound else b"", inputs[name].shape) for name in sorted(inputs)
        )

    def _sizes(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """The sizes of symbolic dimensions, as the inputs have them. Raises MSC0603 where two differ."""
        sizes: dict[str, int] = {}
        for info in self._model.graph.input:
            if info.name not in inputs or not info.type.tensor_type.HasField("shape"):
                continue
            for dim, size in zip(info.type.tensor_type.shape.dim, inputs[info.name].shape, strict=False):
                if dim.dim_param and sizes.setdefault(dim.dim_param, size) != size:
                    message = (
                        f"dimension '{shown(dim.dim_param)}' is {sizes[dim.dim_param]} in one input, but {size} in "
                        f"'{shown(info.name)}'"
                    )
                    raise failure("MSC0603", message)
        return sizes


def _small(array: Array) -> bool:
    return array.size <= (MAXIMUM_ELEMENTS if array.dtype.kind in "iub" else MAXIMUM_REAL_ELEMENTS)


def _undecidable(error: NeedsValues, inputs: Mapping[str, Array]) -> Exception:
    names = ", ".join(f"'{shown(n)}'" for n in sorted(error.inputs)) or "what is computed"
    message = f"{error.diagnostics[0].message}; {names} is too large to compile for each of its values"
    return failure("MSC0716", message, at=error.diagnostics[0].location)
