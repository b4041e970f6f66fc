"""`msc.compile`, `msc.export` and `to_mir` of Cells and functions, which become model files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from msc.backends.registry import DEFAULT, find_backend
from msc.dialects.arrays import Array, dtype_text
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output, forms_of
from msc.driver.artifacts.libraries import library_of
from msc.driver.models.cells import capture, input_names
from msc.driver.options import CompileOptions, Dim, Reporting
from msc.driver.passes.ir_dump import format_module
from msc.frontend.tensor import Placeholder, Tensor
from msc.runtime.artifact import CompiledModel
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.progress import progress
from msc.support.temporary import temporary_folder

MOST_SIZES = 64
"""Compilations that are kept for sizes that calls decide; the cache keeps them all."""


@contextmanager
def _model_file(target: Any, examples: Sequence[Any]) -> Generator[str]:
    with temporary_folder("cell") as folder:
        path = folder / f"{getattr(target, '__name__', type(target).__name__)}.mir"
        capture(target, examples).write(path)
        yield str(path)


def compile_cell(target: Any, examples: Sequence[Any], options: CompileOptions, *, use_cache: bool) -> Any:
    """A Cell or function as a CompiledModel; as a CellOnCall where examples leave sizes open."""
    if any(isinstance(e, Tensor) and isinstance(e.content, Placeholder) for e in examples):
        return CellOnCall(target, examples, options, use_cache=use_cache)
    return _compiled(target, examples, options, use_cache)


@progress()
def _compiled(target: Any, examples: Sequence[Any], options: CompileOptions, use_cache: bool) -> CompiledModel:
    with _model_file(target, examples) as path:
        return library_of(path, options, use_cache=use_cache).load()


class CellOnCall:
    """A Cell that is compiled at each call with sizes that are new: `Tensor(shape=(None, 4))` leaves them open."""

    def __init__(self, target: Any, examples: Sequence[Any], options: CompileOptions, *, use_cache: bool) -> None:
        """Raises MSC0207 for a size of a dimension that no argument leaves open."""
        self._target, self._use_cache = target, use_cache
        self._declared = [Tensor(e) if not isinstance(e, Tensor) else e for e in examples]
        self._names = input_names(target, len(examples))
        self._limits = _limits(self._names, self._declared, options.dims)
        self._options = replace(options, dims={})
        self._compiled: OrderedDict[tuple[tuple[int, ...], ...], CompiledModel] = OrderedDict()

    def __call__(self, *arrays: Any) -> Any:
        """The Cell's results. Raises MSC0601, MSC0603 and MSC0604 for arrays that do not fit the examples."""
        given = [np.asarray(array) for array in arrays]
        self._check(given)
        return self.at(*(array.shape for array in given))(*given)

    def at(self, *shapes: tuple[int, ...]) -> CompiledModel:
        """The compiled model for inputs of these shapes."""
        if shapes not in self._compiled:
            pairs = zip(shapes, self._declared, strict=True)
            examples = [Tensor.of(np.zeros(shape, tensor.dtype.numpy)) for shape, tensor in pairs]
            self._compiled[shapes] = _compiled(self._target, examples, self._options, self._use_cache)
        self._compiled.move_to_end(shapes)
        while len(self._compiled) > MOST_SIZES:
            self._compiled.popitem(last=False)
        return self._compiled[shapes]

    def _check(self, given: Sequence[Array]) -> None:
        if len(given) != len(self._declared):
            message = f"the model takes {', '.join(self._names)}, got {len(given)} arrays"
            raise MscError(Diagnostic("MSC0601", message))
        for array, tensor, name in zip(given, self._declared, self._names, strict=True):
            if array.dtype != tensor.dtype.numpy:
                message = f"input '{name}' has dtype {array.dtype}, expected {tensor.dtype.numpy}"
                raise MscError(Diagnostic("MSC0604", message, help=f"pass array.astype('{tensor.dtype.numpy}')"))
            if array.ndim != len(tensor.shape) or not all(map(self._fits, *self._sizes(array, tensor, name))):
                shape = ", ".join("?" if n == -1 else str(n) for n in tensor.shape)
                limits = "".join(f"; {k} is {a} to {b}" for k, (a, b) in self._limits.items() if k.startswith(name))
                message = f"input '{name}' has shape {list(array.shape)}, expected [{shape}]{limits}"
                raise MscError(Diagnostic("MSC0603", message))

    def _sizes(self, array: Array, tensor: Tensor, name: str) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
        """The sizes of an array, and what each may be."""
        free = (0, 1 << 62)
        limits = [
            (size, size) if size != -1 else self._limits.get(f"{name}.{axis}", free)
            for axis, size in enumerate(tensor.shape)
        ]
        return array.shape, limits

    @staticmethod
    def _fits(size: int, limits: tuple[int, int]) -> bool:
        return limits[0] <= size <= limits[1]

    def __repr__(self) -> str:
        pairs = zip(self._names, self._declared, strict=True)
        inputs = ", ".join(f"{n}: {_type_text(t)}" for n, t in pairs)
        return f"<msc.CellOnCall of {inputs}>"


def _type_text(tensor: Tensor) -> str:
    return "x".join([*("?" if n == -1 else str(n) for n in tensor.shape), dtype_text(tensor.dtype.numpy)])


def _limits(names: Sequence[str], tensors: Sequence[Tensor], dims: Mapping[str, Dim]) -> dict[str, tuple[int, int]]:
    """The least and the largest of each open size that is limited."""
    known = [f"{n}.{axis}" for n, t in zip(names, tensors, strict=True) for axis, s in enumerate(t.shape) if s == -1]
    limits: dict[str, tuple[int, int]] = {}
    for name, size in dims.items():
        if name not in known:
            near = did_you_mean(name, known) or f"its open dimensions: {', '.join(known)}"
            raise MscError(Diagnostic("MSC0207", f"the model has no open dimension '{name}'", help=near))
        limits[name] = (size, size) if isinstance(size, int) else size
    return limits


def text_of(target: Any, examples: Sequence[Any]) -> str:
    """The graph-stage text of a Cell or function."""
    return format_module(capture(target, examples).module)


def export_cell(target: Any, examples: Sequence[Any], path: Path, file_format: str, *, force: bool = False) -> str:
    """Write a Cell in a format. Raises MSC0007 for an unknown one, MSC0011 for a file of others, unless forced."""
    form = {"MIR": "graph", "MINDIR": "graph"}.get(file_format.upper(), file_format.lower())
    forms = forms_of(find_backend(DEFAULT))
    if form not in forms:
        known = ["MIR", "ONNX", *(f.upper() for f in forms if f not in ("graph", "onnx"))]
        near = did_you_mean(file_format.upper(), known) or f"there are {', '.join(known)}"
        raise MscError(Diagnostic("MSC0007", f"there is no format '{file_format}' to export", help=near))
    extension = {
        "graph": ".mir",
        "onnx": ".onnx",
        "obj": ".o",
        "archive": ".a",
        "exe": "",
        "bundle": "",
        "opt": ".opt.mir",
    }
    suffix = extension.get(form, f".{form}" if form in ("so", "c") else f".{form}.mir")
    out = path if suffix == "" or path.name.endswith(suffix) else path.with_name(path.name + suffix)
    if form == "graph":
        capture(target, examples).write(out, force=force)
        return str(out)
    with _model_file(target, examples) as file:
        emit(file, Output(form, out), CompileOptions(), Reporting(), force=force)
    return str(out)
