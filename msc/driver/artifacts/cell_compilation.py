"""`msc.compile`, `msc.export` and `to_mir` of Cells and functions, captured and compiled in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from msc.backends.registry import DEFAULT, find_backend
from msc.backends.stage import GRAPH
from msc.dialects.arrays import dtype_text
from msc.driver.api_arguments import compile_options
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output, forms_of, suffix_of
from msc.driver.artifacts.libraries import compile_module
from msc.driver.artifacts.model_on_call import ModelOnCall
from msc.driver.models.open_tensors import OpenTensor, infos
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions, Reporting
from msc.formats.capture import capture, input_names, open_example
from msc.formats.own_files import save
from msc.formats.registry import ir_format
from msc.frontend.tensor import Placeholder, Tensor
from msc.runtime.artifact import CompiledModel
from msc.support.arrays import Array
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError, did_you_mean
from msc.support.other_frameworks import export_advice
from msc.support.outputs import OutputGuard
from msc.support.progress import progress


def compile_cell(
    target: Any, examples: Sequence[Any], options: CompileOptions, *, use_cache: bool, any_layout: bool
) -> CompiledModel:
    """A Cell or function as a CompiledModel; as a ModelOnCall where examples leave sizes open."""
    if any(isinstance(e, Tensor) and isinstance(e.content, Placeholder) for e in examples):
        if any_layout:
            message = "any_layout has no effect where sizes are open: the order would be another one for each"
            raise MscError(Diagnostic("MSC0014", message, help="give the sizes, or leave it out"))
        return _on_call(target, examples, options, use_cache)
    return _compiled(target, examples, options, use_cache, any_layout)


@progress()
def _compiled(
    target: Any, examples: Sequence[Any], options: CompileOptions, use_cache: bool, any_layout: bool = False
) -> CompiledModel:
    captured = capture(target, examples, any_layout=any_layout)
    return compile_module(captured.module, captured.weights, options, use_cache=use_cache)


def compile_captured(
    module: ModuleOp,
    weights: Mapping[str, Array],
    options: Mapping[str, object],
    samples: Mapping[tuple[int, ...], tuple[ModuleOp, Mapping[str, Array]]],
) -> CompiledModel:
    """A graph that a call captured; `options` are arguments of `msc.compile`. Raises MSC0008, and as that does.

    Where they leave sizes open, the module is that of the largest, and `samples` are the same graph at others.
    """
    return compile_module(module, weights, compile_options(options), samples=samples)


def _on_call(target: Any, examples: Sequence[Any], options: CompileOptions, use_cache: bool) -> ModelOnCall:
    """Raises MSC0207 for a size of a dimension that no argument leaves open."""
    tensors = [Tensor(e) if not isinstance(e, Tensor) else e for e in examples]
    names = input_names(target, len(examples))
    declared = [_declared(name, tensor) for name, tensor in zip(names, tensors, strict=True)]
    open_names = [name for tensor in declared for name in tensor.names if name]
    known = {tensor.name: info.dtype for tensor, info in zip(declared, infos(declared, options), strict=True)}

    def make(shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Array]) -> CompiledModel:
        del values
        made = [Tensor.of(np.zeros(shape, known[name])) for name, shape in shapes.items()]
        return _compiled(target, made, replace(options, dims={}), use_cache)

    name = str(getattr(target, "__name__", type(target).__name__))
    reason = DecidedByCall(open_example(open_names[0]), frozenset())
    return ModelOnCall(name, _limited(options, open_names), reason, tuple(declared), make)


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
    model = LoadedModel.in_memory(capture(target, examples, any_layout=any_layout), backend)
    emit(model, Output(form, out), CompileOptions(), Reporting(), force=force)
    return str(out)
