"""msc as a backend of the ONNX conformance suite: by the interpreter, and by `msc.compile` on a file."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

import msc
from msc.driver.artifacts.model_on_call import ModelOnCall, Specialisations
from msc.importers.imported import Imported
from msc.importers.onnx import import_proto
from msc.interp import evaluate
from msc.interp.inputs import named_results
from msc.ir.entry import find_entry
from msc.ir.verification import verify_module
from msc.runtime.narrow_types import codes_of, values_of

Array: TypeAlias = NDArray[Any]
Executor: TypeAlias = Literal["interp", "c"]
Run: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]
Execute: TypeAlias = Callable[[Imported], Run]


class Prepared(Protocol):
    """A model ready to run: outputs by name for inputs by name."""

    @property
    def bound(self) -> frozenset[str]:
        """The inputs on whose values it was specialised."""
        ...

    def __call__(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]: ...


class Specialised:
    """A model in memory that is imported and made ready, by `execute`, for the shapes and values of its inputs."""

    def __init__(self, model: ModelProto, execute: Execute) -> None:
        self._model, self._execute = model, execute
        self._made = Specialisations(self._make)

    @property
    def bound(self) -> frozenset[str]:
        return self._made.bound

    def __call__(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        run, taken = self._made.at(inputs)
        return run(taken)

    def _make(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]) -> Run:
        imported = import_proto(self._model, input_values=values, shapes=shapes)
        run = self._execute(imported)
        types = dict(imported.codes)

        def call(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
            coded = {n: codes_of(a, types[n]) if n in types else a for n, a in inputs.items()}
            return {n: values_of(a, types[n]) if n in types else a for n, a in run(coded).items()}

        return call


def interpreted(imported: Imported) -> Run:
    """A module run by the interpreter."""
    verify_module(imported.module)
    entry = find_entry(imported.module)
    assert entry is not None
    return lambda inputs: named_results(entry, evaluate(imported.module, inputs, imported.weights))


def named(imported: Imported, results: Sequence[Array]) -> Mapping[str, Array]:
    """The results of a module by the names of the model's outputs."""
    return dict(zip(imported.outputs, results, strict=True))


class Compiled:
    """A model through `msc.compile` alone."""

    def __init__(self, model: ModelProto) -> None:
        folder = TemporaryDirectory(prefix="msc-conformance-")
        weakref.finalize(self, folder.cleanup)
        path = Path(folder.name) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        self._outputs = [info.name for info in model.graph.output]
        self._model = msc.compile(path, use_cache=False)

    @property
    def bound(self) -> frozenset[str]:
        return self._model.bound if isinstance(self._model, ModelOnCall) else frozenset()

    def __call__(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        return dict(zip(self._outputs, self._model.results(*inputs.values()), strict=True))


def _array(value: Any) -> Array:
    """An input as an array; of a sequence or nothing an empty one, since the importer refuses its model."""
    return np.empty(0, object) if value is None or isinstance(value, list) else np.asarray(value)


PREPARE: dict[Executor, Callable[[ModelProto], Prepared]] = {
    "interp": lambda model: Specialised(model, interpreted),
    "c": Compiled,
}


class MscRep(BackendRep):
    """A prepared model; what it learns about its inputs is kept for reports."""

    def __init__(self, model: ModelProto, prepared: Prepared) -> None:
        self.model = prepared
        constants = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [info.name for info in model.graph.input if info.name not in constants]
        self._outputs = [info.name for info in model.graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in order."""
        values = {name: _array(value) for name, value in zip(self._inputs, inputs, strict=False)}
        results = self.model(values)
        return tuple(results[name] for name in self._outputs)


class MscBackend(Backend):
    """The backend; `executor` and `prepared` (the last model, for reports) belong to the class, as the suite has it."""

    executor: ClassVar[Executor] = "interp"
    prepared: MscRep | None = None

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> MscRep:
        """A model ready to run; it is compiled at its first call."""
        cls.prepared = MscRep(model, PREPARE[cls.executor](model))
        return cls.prepared

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU."""
        return device == "CPU"
