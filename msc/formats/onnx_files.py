"""ONNX files: read by `msc.importers.onnx`, written by `msc.exporters.onnx`, run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from msc.formats.format import FileTensor, Format, Reading
from msc.support.diagnostics import Diagnostic, MscError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

    from msc.dialects.arrays import Array
    from msc.importers.imported import Imported
    from msc.support.outputs import OutputSet

LARGEST = (1 << 31) - 1
"""Bytes of a protobuf message."""

_HEAD = 64
"""The producer stands among the first fields."""
_REASON = 200
"""Characters of ONNX Runtime's messages, whose ends tell more than the functions that they begin with."""


class OnnxFormat(Format):
    """`.onnx`."""

    name = "onnx"
    title = "an ONNX model"
    extensions = (".onnx",)
    lacks = "schedules, layouts, updates of states, and operations that opset 18 lacks"
    packages = ("onnx",)
    fixes_inputs = True
    references = {"onnxruntime": "ONNX Runtime"}

    def read(self, model: str, how: Reading) -> Imported:
        """Raises MSC0717 without the `onnx` package, and MSC07xx."""
        self.check_packages()
        from msc.importers.onnx import import_model

        return import_model(
            Path(model),
            dims=how.dims,
            open_dims=how.open_dims,
            input_texts=how.texts,
            input_values=how.values,
            shapes=how.shapes,
            has_open_sizes=how.has_ranges,
        )

    def tensors(self, model: str, what: Literal["input", "output"]) -> Sequence[FileTensor]:
        self.check_packages()
        from msc.importers.onnx.narrow import NARROW
        from msc.importers.onnx.reading.model_file import read_model
        from msc.importers.onnx.reading.tensors import declared_tensors

        return [
            FileTensor(name, dtype, shape, NARROW[number].dtype.name if number in NARROW else "")
            for name, dtype, shape, number in declared_tensors(read_model(Path(model)).graph, what)
        ]

    def write(self, model: Imported, path: Path, files: OutputSet) -> None:
        self.check_packages()
        from msc import __version__
        from msc.exporters.onnx import export_model

        exported = export_model(model.module, model.weights, f"msc {__version__}")
        if exported.ByteSize() > LARGEST:
            message = f"the model takes {exported.ByteSize()} bytes; a file of ONNX has {LARGEST} at most"
            raise MscError(Diagnostic("MSC0720", message))
        files.write(path, exported.SerializeToString(), is_exported)

    def operators(self) -> Iterator[str]:
        self.check_packages()
        from msc.importers.onnx.registry import operators

        yield from operators()

    def reference(self, package: str, model: str, how: Reading) -> OnnxRuntime:
        """Raises MSC0717 without the packages."""
        self.check_packages()
        self.check_package(package, f"comparing with {self.references[package]}")
        from msc.importers.onnx.reading.model_file import read_model

        return OnnxRuntime(Path(model), read_model(Path(model)), how)


def is_exported(path: Path) -> bool:
    """Whether msc wrote an ONNX file. Raises OSError."""
    from msc import __version__
    from msc.support.plain_files import opened

    with opened(path) as file:
        return f"msc {__version__}".encode() in file.read(_HEAD)


class OnnxRuntime:
    """A model run by ONNX Runtime, without its optimisations."""

    title = "ONNX Runtime"

    def __init__(self, path: Path, model: ModelProto, how: Reading, *, is_changed: bool = False) -> None:
        self._path, self._model, self._how, self._is_changed = path, model, how, is_changed

    def fixed(self) -> Mapping[str, Array]:
        from msc.importers.onnx.reading.written_values import written_values

        return {**written_values(self._model.graph, self._how.texts), **self._how.values}

    def outputs(self) -> Sequence[str]:
        return [info.name for info in self._model.graph.output]

    def results(self, inputs: Mapping[str, Array]) -> Sequence[Array]:
        """Raises MSC0721."""
        import numpy as np
        import onnxruntime

        runtime = cast(Any, onnxruntime)  # its stubs are partly untyped
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            text = _whole(self._model, self._path) if self._is_changed else str(self._path)
            session = runtime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
            taken = {info.name for info in session.get_inputs()}
            feed = {n: a for n, a in {**inputs, **self.fixed()}.items() if n in taken}
            return [np.asarray(value) for value in session.run(None, feed)]
        except _failures() as error:
            reason = str(error).strip().partition("\n")[0]
            reason = reason if len(reason) <= _REASON else f"...{reason[-_REASON:]}"
            message = f"{self.title} does not run '{self._path}': {reason}"
            raise MscError(Diagnostic("MSC0721", message)) from error

    def with_all_values(self) -> tuple[OnnxRuntime, Imported, Mapping[str, str]]:
        from msc.importers.onnx import import_proto
        from msc.importers.onnx.node import node_label

        marked, labels = _marked(self._model), dict[str, str]()
        for node in self._model.graph.node:
            labels |= dict.fromkeys(node.output, node_label(node))
        imported = import_proto(
            marked,
            str(self._path),
            dims=self._how.dims,
            input_values=self.fixed(),
            shapes=self._how.shapes,
            folder=self._path.parent,
        )
        return OnnxRuntime(self._path, marked, self._how, is_changed=True), imported, labels


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions of ONNX Runtime, which have no base of their own."""
    state: Mapping[str, object] = vars(import_module("onnxruntime.capi.onnxruntime_pybind11_state"))
    found = [value for value in state.values() if isinstance(value, type) and issubclass(value, Exception)]
    return (*found, ValueError, TypeError)


def _marked(model: ModelProto) -> ModelProto:
    """The model with every value of its graph as an output, in order."""
    from onnx import ModelProto, ValueInfoProto

    marked = ModelProto()
    marked.CopyFrom(model)
    graph: GraphProto = marked.graph
    names = dict.fromkeys(name for node in graph.node for name in node.output if name)
    del graph.output[:]
    graph.output.extend(ValueInfoProto(name=name) for name in names)
    return marked


def _whole(model: ModelProto, path: Path) -> bytes:
    """The model's bytes, with its external data inside."""
    from onnx.external_data_helper import load_external_data_for_model

    load_external_data_for_model(model, str(path.parent))
    return model.SerializeToString()
