"""A model at other sizes than the largest, as far through the compiler as `lift-sizes` compares it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from xdsl.passes import ModulePass

from msc.backends.stage import Stage
from msc.driver.models.dimensions import leave_open
from msc.driver.models.reading_models import LoadedModel, read_model
from msc.driver.options import CompileOptions
from msc.driver.passes.instances import Changes, changes_of, pass_instances
from msc.driver.passes.pass_manager import PassManager
from msc.graph.shapes.lift_sizes import LiftSizes
from msc.graph.shapes.size_comparison import Sample, sample_sizes
from msc.support.diagnostics import MscError
from msc.weights.evaluated_parameters import EvaluatedParameters


def sample_changes(stage: Stage, model: LoadedModel, options: CompileOptions) -> Changes:
    """For `lift-sizes`, where the stage has it and calls decide sizes: the model at other sizes."""
    if not options.open_dims or not stage.has(LiftSizes.name):
        return {}
    ranges = [options.open_dims[name] for name in sorted(options.open_dims)]
    at, least = sample_sizes(ranges), tuple(low for low, _ in ranges)
    own = EvaluatedParameters(model.module, model.weights())
    samples = tuple(_sample(model, options, sizes, own) for sizes in at)
    smallest = None if least in at else _smallest(model, options, least, own)
    return {LiftSizes.name: {"samples": samples, "smallest": smallest}}


def _smallest(
    model: LoadedModel, options: CompileOptions, sizes: tuple[int, ...], own: EvaluatedParameters
) -> Sample | None:
    """None if there is no such model, as an image of one pixel is smaller than a filter: no call can have that size."""
    if model.imported is not None and model.imported.samples and model.at(sizes) is None:
        return None
    try:
        return _sample(model, options, sizes, own)
    except MscError:
        return None


def _sample(model: LoadedModel, options: CompileOptions, sizes: tuple[int, ...], own: EvaluatedParameters) -> Sample:
    """The model at some sizes, beside one whose parameters are its `own`."""
    ranges = {name: (size, size) for name, size in zip(sorted(options.open_dims), sizes, strict=True)}
    bound = replace(options, dims={**options.largest_dims, **ranges})
    other = model.at(sizes) or read_model(model.path, bound)
    leave_open(other.module, options.open_dims)
    PassManager(other.context, other.sources, verify_each=False).run(other.module, _passes(other, bound))
    return Sample(sizes, other.module, EvaluatedParameters(other.module, other.weights()), own)


def _passes(model: LoadedModel, options: CompileOptions) -> Sequence[ModulePass]:
    """The passes before `lift-sizes`, from the stage of the model on."""
    runs = [run for stage in options.backend.table.after(model.stage) for run in stage.passes]
    before = list(takewhile(lambda run: run.name != LiftSizes.name, runs))
    return pass_instances(before, changes_of(options))
