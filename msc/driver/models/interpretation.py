"""Running a model as it stands, at whatever stage, by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr

from msc.backends.stage import Stage
from msc.dialects.arrays import Array, dtype_text
from msc.dialects.ms.attributes import MS_ROLE
from msc.driver.models.entry import entry_function
from msc.driver.models.reading_models import LoadedModel
from msc.interp import WeightSource, evaluate, evaluate_loops
from msc.interp.inputs import arguments, declared
from msc.ir.donation import STATE
from msc.runtime.program import TensorSpec


def interpret(model: LoadedModel, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of a model for its inputs in order. Raises what the interpreter raises."""
    return interpret_module(model.module, model.stage, inputs, model.weights())


def interpret_module(
    module: ModuleOp, stage: Stage, inputs: Sequence[Array], weights: WeightSource
) -> tuple[Array, ...]:
    """The outputs of a module at a stage, and the same call for all of them."""
    run = evaluate if stage.holds_tensors else evaluate_loops
    return run(module, inputs, weights)


def input_tensors(module: ModuleOp, entry: str | None = None) -> tuple[TensorSpec, ...]:
    """The inputs of an entry function of a module at any stage."""
    tensors = list[TensorSpec]()
    for argument, attributes in arguments(entry_function(module, entry)):
        role = attributes.get(MS_ROLE)
        if not isinstance(role, StringAttr) or role.data in ("input", STATE):
            found = declared(argument, attributes)
            tensors.append(TensorSpec(found.name, found.name, dtype_text(found.dtype), found.shape))
    return tuple(tensors)
