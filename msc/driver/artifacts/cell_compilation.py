"""`msc.compile`, `msc.export` and `to_mir` of Cells and functions, which become model files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from msc.backends.registry import DEFAULT, find_backend
from msc.backends.stage import GRAPH
from msc.dialects.arrays import dtype_text
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output, forms_of, suffix_of
from msc.driver.artifacts.libraries import library_of
from msc.driver.models.open_tensors import OpenTensor, checked_inputs, infos
from msc.driver.options import CompileOptions, Reporting
from msc.formats.capture import capture, input_names, open_example
from msc.formats.own_files import save
from msc.formats.registry import ir_format
from msc.frontend.tensor import Placeholder, Tensor
from msc.runtime.artifact import CompiledModel
from msc.runtime.tensor_info import TensorInfo
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.escaping import file_name
from msc.support.failures import Door
from msc.support.other_frameworks import export_advice
from msc.support.outputs import OutputGuard
from msc.support.progress import progress
from msc.support.temporary import temporary_folder

MOST_SIZES = 64
"""Compilations that are kept for sizes that calls decide; the cache keeps them all."""


@contextmanager
def _model_file(target: Any, examples: Sequence[Any], any_layout: bool) -> Generator[str]:
    with temporary_folder("cell") as folder:
        path = folder / f"{file_name(str(getattr(target, '__name__', type(target).__name__)))}{GRAPH.extension}"
        save(capture(target, examples, any_layout=any_layout), path)
        yield str(path)


def compile_cell(
    target: Any, examples: Sequence[Any], options: CompileOptions, *, use_cache: bool, any_layout: bool
) -> Any:
    """A Cell or function as a CompiledModel; as a CellOnCall where examples leave sizes open."""
    if any(isinstance(e, Tensor) and isinstance(e.content, Placeholder) for e in examples):
        if any_layout:
            message = "any_layout has no effect where sizes are open: the order would be another one for each"
            raise MscError(Diagnostic("MSC0014", message, help="give the sizes, or leave it out"))
        return CellOnCall(target, examples, options, use_cache=use_cache)
    return _compiled(target, examples, options, use_cache, any_layout)


@progress()
def _compiled(
    target: Any, examples: Sequence[Any], options: CompileOptions, use_cache: bool, any_layout: bool = False
) -> CompiledModel:
    with _model_file(target, examples, any_layout) as path:
        return library_of(path, options, use_cache=use_cache).load()


class CellOnCall:
    """A Cell that is compiled at each call with sizes that are new: `Tensor(shape=(None, 4))` leaves them open."""

    def __init__(self, target: Any, examples: Sequence[Any], options: CompileOptions, *, use_cache: bool) -> None:
        """Raises MSC0207 for a size of a dimension that no argument leaves open."""
        self._target, self._use_cache = target, use_cache
        tensors = [Tensor(e) if not isinstance(e, Tensor) else e for e in examples]
        names = input_names(target, len(examples))
        self._declared = [_declared(name, tensor) for name, tensor in zip(names, tensors, strict=True)]
        self._limits = _limited(options, [name for tensor in self._declared for name in tensor.names if name])
        self._options = replace(options, dims={})
        self._compiled: OrderedDict[tuple[tuple[int, ...], ...], CompiledModel] = OrderedDict()

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name, dtype and shape of each input, in the order of a call."""
        return infos(self._declared, self._limits)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The Cell's results. Raises MSC0601 to MSC0604 for arrays that do not fit the examples."""
        with Door():
            given = tuple(checked_inputs(self._declared, self._limits, arrays, named).values())
            return self.at(*(array.shape for array in given))(*given)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> NoReturn:
        """A library is of known sizes, or ranges of them. Raises MSC0207."""
        name = next(name for tensor in self._declared for name in tensor.names if name)
        raise MscError(open_example(name))

    def at(self, *shapes: tuple[int, ...]) -> CompiledModel:
        """The compiled model for inputs of these shapes."""
        if shapes not in self._compiled:
            pairs = zip(shapes, self.inputs, strict=True)
            examples = [Tensor.of(np.zeros(shape, tensor.dtype)) for shape, tensor in pairs]
            self._compiled[shapes] = _compiled(self._target, examples, self._options, self._use_cache)
        self._compiled.move_to_end(shapes)
        while len(self._compiled) > MOST_SIZES:
            self._compiled.popitem(last=False)
        return self._compiled[shapes]

    def __repr__(self) -> str:
        inputs = ", ".join(f"{tensor.name}: {tensor.type_text}" for tensor in self._declared)
        return f"<msc.CellOnCall of {inputs}>"


def _declared(name: str, tensor: Tensor) -> OpenTensor:
    """An example as an input: its open sizes are called `x.0`, after the input and their places."""
    sizes = [f"{name}.{axis}" if size == -1 else size for axis, size in enumerate(tensor.shape)]
    return OpenTensor(name, dtype_text(tensor.dtype.numpy), tuple(sizes))


def _limited(options: CompileOptions, known: Sequence[str]) -> CompileOptions:
    """Options with the limits of open sizes. Raises MSC0207 for one that is not open."""
    for name in options.dims:
        if name not in known:
            near = did_you_mean(name, known) or f"its open dimensions: {', '.join(known)}"
            raise MscError(Diagnostic("MSC0207", f"the model has no open dimension '{name}'", help=near))
    fixed = {name: (size, size) if isinstance(size, int) else size for name, size in options.dims.items()}
    return replace(options, dims=fixed)


def export_cell(
    target: Any,
    examples: Sequence[Any],
    path: Path,
    file_format: str,
    *,
    force: bool = False,
    any_layout: bool = False,
) -> str:
    """Write a Cell in a format. Raises MSC0007 for an unknown one, MSC0011 for a file of others, unless forced."""
    backend, own = find_backend(DEFAULT), ir_format()
    form = GRAPH.name if file_format.lower() == own.name else file_format.lower()
    if form not in forms_of(backend):
        known = [own.name.upper(), *(f.upper() for f in forms_of(backend) if f != GRAPH.name)]
        near = export_advice(file_format) or did_you_mean(file_format.upper(), known) or f"there are {', '.join(known)}"
        raise MscError(Diagnostic("MSC0007", f"there is no format '{file_format}' to export", help=near))
    suffix = suffix_of(form, backend)
    out = path if suffix == "" or path.name.endswith(suffix) else path.with_name(path.name + suffix)
    if form == GRAPH.name:
        save(capture(target, examples, any_layout=any_layout), out, OutputGuard(force=force))
        return str(out)
    with _model_file(target, examples, any_layout) as file:
        emit(file, Output(form, out), CompileOptions(), Reporting(), force=force)
    return str(out)
