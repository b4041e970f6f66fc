"""msc as a backend of the ONNX conformance suite: through the interpreter, or through the whole compiler down to C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

from msc.driver.options import CompileOptions
from msc.driver.specialise import compile_imported
from msc.importers.onnx import Imported, SpecialisingModel
from msc.interp import evaluate
from msc.ir.verification import verify_module

Array: TypeAlias = NDArray[Any]
Executor: TypeAlias = Literal["interp", "c"]
Run: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]


def interpreted(imported: Imported) -> Run:
    """A module run by the interpreter."""
    verify_module(imported.module)
    return lambda inputs: _named(imported, evaluate(imported.module, inputs, imported.weights))


def compiled(imported: Imported) -> Run:
    """A module compiled to C, built and loaded."""
    model = compile_imported(imported, "model.onnx", CompileOptions())
    return lambda inputs: _named(imported, model(inputs))


def _named(imported: Imported, results: Sequence[Array]) -> Mapping[str, Array]:
    return dict(zip(imported.outputs, results, strict=True))


def _array(value: Any) -> Array:
    """An input as an array; of a sequence or nothing an empty one, since the importer refuses its model."""
    return np.empty(0, object) if value is None or isinstance(value, list) else np.asarray(value)


EXECUTORS: Mapping[Executor, Callable[[Imported], Run]] = {"interp": interpreted, "c": compiled}


class MscRep(BackendRep):
    """A prepared model; what it learns about its inputs is kept for reports."""

    def __init__(self, model: ModelProto, executor: Executor) -> None:
        self.model = SpecialisingModel(model, EXECUTORS[executor])
        self._outputs = [info.name for info in model.graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in order."""
        values = {name: _array(value) for name, value in zip(self.model.inputs, inputs, strict=False)}
        results = self.model(values)
        return tuple(results[name] for name in self._outputs)


class MscBackend(Backend):
    """The backend; `executor` and `prepared` (the last model, for reports) belong to the class, as the suite has it."""

    executor: Executor = "interp"
    prepared: MscRep | None = None

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> MscRep:
        """A model ready to run; it is compiled at its first call."""
        cls.prepared = MscRep(model, cls.executor)
        return cls.prepared

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU."""
        return device == "CPU"
