"""msc as a backend of the ONNX conformance suite: through the interpreter, or through the whole compiler down to C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

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
Execute: TypeAlias = Callable[[Imported], Run]


def interpreted(imported: Imported) -> Run:
    """A module run by the interpreter."""
    verify_module(imported.module)
    return lambda inputs: named(imported, evaluate(imported.module, inputs, imported.weights))


def compiled(imported: Imported) -> Run:
    """A module compiled to C, built and loaded."""
    model = compile_imported(imported, "model.onnx", CompileOptions())
    return lambda inputs: named(imported, model(inputs))


def named(imported: Imported, results: Sequence[Array]) -> Mapping[str, Array]:
    """The results of a module by the names of the model's outputs."""
    return dict(zip(imported.outputs, results, strict=True))


def _array(value: Any) -> Array:
    """An input as an array; of a sequence or nothing an empty one, since the importer refuses its model."""
    return np.empty(0, object) if value is None or isinstance(value, list) else np.asarray(value)


EXECUTORS: Mapping[Executor, Execute] = {"interp": interpreted, "c": compiled}


class MscRep(BackendRep):
    """A prepared model; what it learns about its inputs is kept for reports."""

    def __init__(self, model: ModelProto, execute: Execute) -> None:
        self.model = SpecialisingModel(model, execute)
        self._outputs = [info.name for info in model.graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in order."""
        values = {name: _array(value) for name, value in zip(self.model.inputs, inputs, strict=False)}
        results = self.model(values)
        return tuple(results[name] for name in self._outputs)


class MscBackend(Backend):
    """The backend; `execute` and `prepared` (the last model, for reports) belong to the class, as the suite has it."""

    execute: ClassVar[Execute] = interpreted
    prepared: MscRep | None = None

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> MscRep:
        """A model ready to run; it is compiled at its first call."""
        cls.prepared = MscRep(model, cls.execute)
        return cls.prepared

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU."""
        return device == "CPU"
