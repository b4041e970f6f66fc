"""The entry points of the importer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto

from msc.dialects.arrays import Array
from msc.importers.imported import Imported
from msc.importers.onnx.model import Binding, build_module
from msc.importers.onnx.reading.external_data import ExternalData
from msc.importers.onnx.reading.model_file import read_model
from msc.importers.onnx.reading.tensors import TensorReader
from msc.importers.onnx.reading.written_values import written_values


def import_model(
    path: Path,
    *,
    dims: Mapping[str, int] | None = None,
    input_values: Mapping[str, Array] | None = None,
    input_texts: Mapping[str, str] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    open_dims: Collection[str] = (),
    has_open_sizes: bool = False,
) -> Imported:
    """The module and the weights of an ONNX file; weights in external files stay mapped.

    `dims` binds symbolic dimensions, `input_values` the values of inputs, which then are inputs no more;
    `input_texts` gives such values as text, "0,1"; `shapes` are whole shapes of inputs, for what the model leaves open;
    the arguments keep the names of `open_dims`, and of what stays open. A model that `has_open_sizes` is written the
    same whatever the sizes are: no loop is unrolled.
    Raises MSC07xx, MSC0604, and MSC02xx with the name of the node
    that does not fit.
    """
    external, model = ExternalData(path.parent), read_model(path)
    values = dict(input_values or {}) | written_values(model.graph, input_texts or {})
    binding = Binding(dims or {}, values, shapes or {}, frozenset(open_dims), has_open_sizes)
    imported = build_module(model, str(path), TensorReader(external), binding)
    return replace(imported, files=external.files)


def import_proto(
    model: ModelProto,
    name: str = "model.onnx",
    *,
    dims: Mapping[str, int] | None = None,
    input_values: Mapping[str, Array] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    folder: Path | None = None,
) -> Imported:
    """As `import_model`, of a model in memory; external data lie in `folder`, and there are none without it.

    `shapes` are whole shapes of inputs, for sizes that the model leaves open without a name.
    """
    external = None if folder is None else ExternalData(folder)
    return build_module(model, name, TensorReader(external), Binding(dims or {}, input_values or {}, shapes or {}))
