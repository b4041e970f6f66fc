"""Models that are quantised: read as files and Cells are, taken to the stage `opt`, compiled to be calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from msc.backends.stage import OPT
from msc.dialects.arrays import Array
from msc.dialects.ms.target import TARGET
from msc.driver.api_arguments import compile_options
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import choose_output
from msc.driver.artifacts.libraries import compile_module
from msc.driver.compile import compile_model
from msc.driver.models.interpretation import input_tensors
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions, Reporting
from msc.formats.capture import capture
from msc.formats.user_code import UserCode
from msc.ir.verification import verify_module
from msc.quantization.blocks import Algorithm, BlockScheme
from msc.quantization.copies import Compiler, Rows, Run, StoredGraph
from msc.quantization.data import InputType, rows_of
from msc.quantization.integers import Scheme
from msc.quantization.quantizing import Metric, Preferences, QuantizedModel, Which, quantize_model, with_operators
from msc.quantization.ranges import METHODS, Grid
from msc.runtime.arguments import numpy_dtype
from msc.runtime.artifact import CompiledModel
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.failures import Door


@dataclass(frozen=True)
class QuantisationChoices:
    """The options of `quantize`, with their defaults."""

    method: str = "min-max"
    activations: str = "uint8"
    bits: int = 8
    weight_bits: int = 8
    symmetric: bool = False
    per_channel: bool = True
    operators: Which = "auto"
    dynamic: bool = False
    keep_f32: Sequence[str] = ()
    worst: int = 0
    max_drop: float | None = None
    metric: Any = None
    bias_correction: bool = True
    equalise: bool = False
    smoothing: float = 0.0
    weights: str | None = None
    algorithm: Algorithm = "rtn"
    block: int = 32
    asymmetric: bool = False
    round_inputs: bool = False
    prune: float = 0.0

    def preferences(self) -> Preferences:
        """Raises MSC1214 for a value that an option cannot have."""
        _one_of("method", self.method, METHODS)
        _one_of("activations", self.activations, ("int8", "uint8"))
        _one_of("operators", self.operators, ("all", "products", "auto"))
        for name in ("bits", "weight_bits"):
            if getattr(self, name) not in range(2, 9):
                raise _unusable(name, getattr(self, name), "2 to 8")
        _one_of("algorithm", self.algorithm, ("rtn", "gptq", "awq"))
        if not 0 <= self.prune < 1:
            raise _unusable("prune", self.prune, "a share of the channels below 1")
        blocks = None
        if self.weights is not None:
            _one_of("weights", self.weights, ("2bit", "4bit", "8bit"))
            if self.block < 16 or self.block & (self.block - 1):
                raise _unusable("block", self.block, "a power of two from 16 on")
            blocks = BlockScheme(
                int(self.weights[0]), self.block, not self.asymmetric, self.algorithm, self.round_inputs
            )
        elif self.algorithm != "rtn" or self.asymmetric or self.round_inputs:
            raise _unusable("weights", self.weights, "2bit, 4bit or 8bit with a choice of how blocks are rounded")
        scheme = Scheme(
            Grid(self.activations, self.bits, self.symmetric),
            Grid("int8", self.weight_bits, symmetric=True, narrow=True),
            self.per_channel,
            dynamic=self.dynamic,
            keep=frozenset([self.keep_f32] if isinstance(self.keep_f32, str) else self.keep_f32),
        )
        return Preferences(
            with_operators(scheme, self.operators),
            self.method,
            self.worst,
            self.max_drop,
            None if self.metric is None else _checked(self.metric),
            self.bias_correction,
            self.equalise,
            self.smoothing,
            self.prune,
            blocks,
        )


def _checked(metric: Metric) -> Metric:
    """A user's metric: its exceptions, and values that cannot be compared, are errors at its line."""

    def measured(model: Run) -> float:
        with UserCode("MSC1214", "the metric gives no number"):
            number = float(metric(model))
            if not np.isfinite(number):
                raise ValueError(f"it is {number}")
            return number

    return measured


def _one_of(name: str, value: str, known: Sequence[str] | Mapping[str, Any]) -> None:
    if value not in known:
        raise _unusable(name, value, ", ".join(known), did_you_mean(str(value), known))


def _unusable(name: str, value: object, wanted: str, help_: str | None = None) -> MscError:
    return MscError(Diagnostic("MSC1214", f"{name} is {value!r}; it is one of {wanted}", help=help_))


def quantize(model: Any, data: object, examples: Sequence[Any], wishes: Mapping[str, Any]) -> QuantizedModel:
    """What `msc.quantization.quantize` does."""
    with Door():
        known = [each.name for each in fields(QuantisationChoices)]
        for name in wishes:
            if name not in (*known, "dims"):
                raise MscError(Diagnostic("MSC1214", f"there is no option '{name}'", help=did_you_mean(name, known)))
        dims = dict(wishes.get("dims") or {})
        choices = QuantisationChoices(**{name: value for name, value in wishes.items() if name != "dims"})
        options = CompileOptions(dims=dims)
        if isinstance(model, str | PathLike):
            return quantize_file(fspath(model), data, choices, dims)
        given: Sequence[Any] = examples or _first_rows(data)
        loaded = LoadedModel.in_memory(capture(model, given), options.backend)
        return quantize_loaded(loaded, "model", data, choices.preferences(), options)


def _first_rows(data: object) -> Sequence[Any]:
    """Arguments like the data: one sample of each array."""
    arrays: Sequence[Any] = list(cast(Mapping[str, Any], data).values()) if isinstance(data, dict) else [data]
    if not all(isinstance(array, np.ndarray) and array.ndim for array in arrays):
        message = "a Cell needs examples of its arguments beside data of this kind"
        raise MscError(Diagnostic("MSC1211", message, help="quantize(net, data, example)"))
    return [array[:1] for array in arrays]


def quantize_file(
    model: str, data: object, wishes: QuantisationChoices | Mapping[str, Any], dims: Mapping[str, Any]
) -> QuantizedModel:
    """Quantise a model file."""
    choices = wishes if isinstance(wishes, QuantisationChoices) else QuantisationChoices(**wishes)
    return quantize_loaded(model, model, data, choices.preferences(), CompileOptions(dims=dims))


def quantize_loaded(
    model: str | LoadedModel, name: str, data: object, preferences: Preferences, options: CompileOptions
) -> QuantizedModel:
    """Quantise a model of a file or in memory."""
    compilation = compile_model(model, options, OPT.name)
    graph = StoredGraph(compilation.module, compilation.model.weights())
    graph.module.attributes.pop(TARGET, None)
    inputs = [
        InputType(each.name, each.shape, np.dtype(numpy_dtype(each.dtype))) for each in input_tensors(graph.module)
    ]
    rows: Rows = [] if data is None and not preferences.needs_data else rows_of(data, inputs)
    made = quantize_model(graph, rows, _compiler(options), preferences)

    def compiles(arguments: Mapping[str, Any]) -> CompiledModel:
        with Door():
            return compile_module(made.module.module, made.module.weights, compile_options(arguments), name=name)

    def saves(path: Path, force: bool) -> None:
        with Door():
            loaded = LoadedModel.in_memory(made.module, options.backend, path.name)
            emit(loaded, choose_output(None, str(path), None, options.backend), options, Reporting(), force=force)

    return QuantizedModel(made, compiles, saves)


def _compiler(options: CompileOptions) -> Compiler:
    def compiled(module: ModuleOp, weights: Mapping[str, Array]) -> Run:
        verify_module(module)
        model = compile_module(module, weights, options, name="calibration", use_cache=False)
        return lambda row: model.results(*row.values())

    return compiled
