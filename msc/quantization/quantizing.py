"""A model in reals to one in integers: calibration, ranges, corrections, and the layers that stay in f32."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from msc.importers.imported import Imported
from msc.quantization.blocks import BlockScheme, PackedWriter, measured, packable
from msc.quantization.calibration import LayerError, Observed, layer_errors, observe
from msc.quantization.copies import Compiler, Rows, Run, StoredGraph
from msc.quantization.improvements import equalise, prune, smooth
from msc.quantization.integers import IntegerWriter, Position, Scheme
from msc.quantization.places import BETWEEN, QuantisedLayer
from msc.quantization.ranges import Histogram
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

Metric = Callable[[Run], float]
"""From a model as a function to a number: the larger, the better."""


@dataclass(frozen=True)
class Preferences:
    """What a user says of a quantisation beyond the scheme.

    `worst` layers of the least signal-to-noise ratio stay in f32; with `max_drop`, as many as the metric needs to
    lose no more than that. `smoothing` is SmoothQuant's strength, 0 for none.
    """

    scheme: Scheme = field(default_factory=Scheme)
    method: str = "min-max"
    worst: int = 0
    max_drop: float | None = None
    metric: Metric | None = None
    corrects_bias: bool = True
    equalises: bool = False
    smoothing: float = 0.0
    prunes: float = 0.0
    """The share of channels that is removed first."""
    blocks: BlockScheme | None = None
    """Weights alone, in few bits."""

    @property
    def needs_data(self) -> bool:
        """Whether a model cannot be quantised without calibration data."""
        if self.blocks is not None:
            return self.blocks.algorithm != "rtn"
        return not self.scheme.dynamic or self.smoothing > 0


@dataclass(frozen=True)
class Quantized:
    """A quantised model as QDQ, with what calibration saw and how each layer does."""

    module: Imported
    errors: Sequence[LayerError]
    kept: Sequence[str]
    ranges: Mapping[Position, tuple[float, float]] = field(default_factory=dict[Position, tuple[float, float]])
    histograms: Mapping[Position, Histogram] = field(default_factory=dict[Position, Histogram])
    inputs: Mapping[str, Position] = field(default_factory=dict[str, Position])
    before: float | None = None
    after: float | None = None
    too_wide: Sequence[str] = ()
    bytes: tuple[int, int] = (0, 0)
    """Of the weights before and after."""

    def report(self) -> str:
        """A table of the layers, the worst first: signal to noise, range and distribution of the input."""
        rows = [("layer", "kind", "snr dB", "input range", "distribution of the input")]
        for error in sorted(self.errors, key=lambda each: each.snr):
            place = self.inputs.get(error.name)
            seen = self.histograms.get(place) if place is not None else None
            low, high = self.ranges.get(place, (0.0, 0.0)) if place is not None else (0.0, 0.0)
            kept = "f32" if error.name in self.kept else f"{error.snr:.1f}"
            shown = "" if seen is None else f"{low:.4g} .. {high:.4g}"
            rows.append((error.name, error.kind, kept, shown, "" if seen is None else seen.picture(24)))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        before, after = self.bytes
        lines.append(f"weights: {before} bytes before, {after} after")
        if self.before is not None and self.after is not None:
            lines.append(f"metric: {self.before:.6g} before, {self.after:.6g} after")
        lines += [
            f"{name}: the bias is beyond i32 in the scale of the sums, and stays in f32" for name in self.too_wide
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class QuantizedModel:
    """What `quantize` gives: the model, its report, and ways to go on."""

    result: Quantized
    compiles: Callable[[Mapping[str, Any]], Callable[..., Any]]
    saves: Callable[[Path, bool], None]

    def report(self) -> str:
        """A table of the layers, the worst first: signal to noise, range and distribution of the input."""
        return self.result.report()

    @property
    def kept(self) -> Sequence[str]:
        """The layers that stay in f32."""
        return self.result.kept

    @property
    def snr(self) -> Mapping[str, float]:
        """The ratio of signal to noise of each layer, in dB."""
        return {each.name: each.snr for each in self.result.errors}

    def compile(self, **options: Any) -> Callable[..., Any]:
        """The model as a function on arrays; options as of `msc.compile`."""
        return self.compiles(options)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the model: QDQ as `.onnx`, `.mir` with its weights beside it, or what `msc compile` writes.

        A file that msc did not write is replaced only if `force` is given. Raises MSC0007, MSC0010 and MSC0011.
        """
        self.saves(Path(fspath(path)), force)


def _check_names(keep: Collection[str], layers: Collection[QuantisedLayer]) -> None:
    """Raises MSC1214 for a name that is no layer's."""
    known = [layer.name for layer in layers]
    for name in sorted(set(keep) - set(known)):
        message = f"keep_f32 names '{name}', which is no layer that would be quantised"
        help_ = did_you_mean(name, known) or f"layers are {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
        raise MscError(Diagnostic("MSC1214", message, help=help_))


def quantize_model(model: StoredGraph, rows: Rows, compiled: Compiler, wishes: Preferences) -> Quantized:
    """Quantise a model by what it computes on rows of data. Raises MSC1210 to MSC1214."""
    if not rows and wishes.needs_data:
        message = "the calibration data has no rows"
        raise MscError(Diagnostic("MSC1211", message, help="give some dozens of inputs as they come in use"))
    size = sum(array.nbytes for array in model.weights.values())
    model = model.copy()
    if wishes.prunes:
        prune(model, wishes.prunes)
    plan = (_IntegerPlan if wishes.blocks is None else _BlockPlan)(model, rows, compiled, wishes)
    order = [each.name for each in sorted(plan.errors, key=lambda each: each.snr)]
    kept = wishes.scheme.keep | frozenset(order[: wishes.worst])
    made = plan.written(kept)
    before = after = None
    if wishes.metric is not None:
        before = float(wishes.metric(compiled(model.module, model.weights)))
        after = float(wishes.metric(compiled(made.module, made.weights)))
        count = wishes.worst
        while wishes.max_drop is not None and before - after > wishes.max_drop and count < len(order) - 1:
            count = min(max(1, 2 * count), len(order) - 1)
            kept = wishes.scheme.keep | frozenset(order[:count])
            made = plan.written(kept)
            after = float(wishes.metric(compiled(made.module, made.weights)))
        if wishes.max_drop is not None and before - after > wishes.max_drop:
            message = f"the metric falls from {before:.6g} to {after:.6g}, by more than {wishes.max_drop:.6g}"
            note = f"with {len(kept)} of {len(order)} layers in f32"
            raise MscError(
                Diagnostic("MSC1213", message, notes=(note,), help="allow more, or give more calibration data")
            )
    return replace(
        plan.found,
        module=Imported(made.module, made.weights),
        kept=sorted(kept),
        before=before,
        after=after,
        bytes=(size, sum(array.nbytes for array in made.weights.values())),
    )


class _IntegerPlan:
    """Layers that compute in integers: ranges, errors and shifts of biases by calibration."""

    def __init__(self, model: StoredGraph, rows: Rows, compiled: Compiler, wishes: Preferences) -> None:
        if wishes.equalises:
            equalise(model)
        if wishes.smoothing:
            smooth(model, rows, compiled, wishes.smoothing)
        self._model, self._scheme = model, wishes.scheme
        _check_names(self._scheme.keep, replace(self._scheme, keep=frozenset[str]()).places(model).layers)
        observed = Observed() if self._scheme.dynamic else observe(model, self._scheme, rows, compiled)
        self._ranges = observed.ranges(self._scheme, wishes.method)
        self.errors = [] if self._scheme.dynamic else layer_errors(model, self._scheme, self._ranges, rows, compiled)
        self._shifts = {each.name: each.shift for each in self.errors} if wishes.corrects_bias else {}
        places = self._scheme.places(model)
        inputs = {
            layer.name: places.position(layer.op.operands[0])
            for layer in places.layers
            if not isinstance(layer.op, BETWEEN) and layer.op.operands[0] in places.values
        }
        self.found = Quantized(
            Imported(model.module, model.weights), self.errors, (), self._ranges, observed.histograms, inputs
        )

    def written(self, keep: Collection[str]) -> StoredGraph:
        """The model with all layers in integers but those in `keep`."""
        copy = self._model.copy()
        writer = IntegerWriter(copy, self._scheme.without(keep), self._ranges, self._shifts)
        writer.write()
        self.found = replace(self.found, too_wide=writer.too_wide)
        return copy


class _BlockPlan:
    """Weights in few bits, by what their inputs are on the data."""

    def __init__(self, model: StoredGraph, rows: Rows, compiled: Compiler, wishes: Preferences) -> None:
        assert wishes.blocks is not None
        self._model, self._scheme = model, wishes.blocks
        _check_names(wishes.scheme.keep, packable(model))
        self._inputs = measured(model, rows, compiled) if rows else {}
        self.errors = self._writer(wishes.scheme.keep)[1].errors
        self.found = Quantized(Imported(model.module, model.weights), self.errors, ())

    def _writer(self, keep: Collection[str]) -> tuple[StoredGraph, PackedWriter]:
        copy = self._model.copy()
        writer = PackedWriter(copy, self._scheme, self._inputs)
        writer.write(keep)
        return copy, writer

    def written(self, keep: Collection[str]) -> StoredGraph:
        """The model with packed weights but in the layers of `keep`."""
        return self._writer(keep)[0]


Which = Literal["all", "products", "auto"]


def with_operators(scheme: Scheme, which: Which) -> Scheme:
    """The scheme for all operations that can be in integers, for products alone, or as the model suggests."""
    return replace(scheme, between={"all": True, "products": False, "auto": None}[which])
