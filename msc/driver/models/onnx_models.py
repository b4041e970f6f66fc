"""ONNX files where MODEL is wanted: imported, with sizes and input values as the options give them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msc.driver.options import CompileOptions, InputValue
from msc.support.diagnostics import Diagnostic, MscError

if TYPE_CHECKING:
    from msc.dialects.arrays import Array
    from msc.importers.onnx import Imported

EXTENSION = ".onnx"


def is_onnx(model: str) -> bool:
    """Whether a MODEL is an ONNX file by its name, in capitals too."""
    return model.lower().endswith(EXTENSION)


def check_onnx() -> None:
    """Raise MSC0717 without the `onnx` package."""
    if find_spec("onnx") is None:
        message = "reading ONNX files needs the package 'onnx'"
        raise MscError(Diagnostic("MSC0717", message, help="pip install onnx"))


def load_onnx(model: str, options: CompileOptions) -> Imported:
    """The module and the weights of an ONNX file. Raises MSC0717 without the `onnx` package, and MSC07xx."""
    check_onnx()
    from msc.importers.onnx import import_model

    given = options.input_values
    return import_model(
        Path(model),
        dims=options.largest_dims,
        open_dims=options.open_dims,
        input_texts={name: value for name, value in given.items() if isinstance(value, str)},
        input_values={name: array_of(value) for name, value in given.items() if isinstance(value, InputValue)},
        shapes=options.shapes,
        has_open_sizes=options.has_ranges,
    )


def array_of(value: InputValue) -> Array:
    """The value as an array."""
    import ml_dtypes
    import numpy as np

    return np.frombuffer(value.data, np.dtype(getattr(ml_dtypes, value.dtype, value.dtype))).reshape(value.shape)
