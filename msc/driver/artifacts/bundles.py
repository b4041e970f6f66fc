"""Bundles from compilations: the golden input is seeded random, the golden output is the interpreter's."""

from __future__ import annotations

from pathlib import Path

from msc.driver.compile import Compilation
from msc.driver.models.interpretation import interpret
from msc.driver.models.model_inputs import random_inputs
from msc.driver.models.model_outputs import Tolerance
from msc.driver.models.reading_models import read_model
from msc.runtime.bundle import Golden, write_bundle
from msc.runtime.program import CProgram
from msc.runtime.stored_order import StoredOrders
from msc.support.outputs import OutputGuard

_SEED = 0


def emit_bundle(compilation: Compilation, program: CProgram, folder: Path, guard: OutputGuard) -> None:
    """Write a bundle whose self-test compares C with the interpreter on the model as it was read, as `msc verify` does.

    The inputs that the function updates are not compared. Raises MSC0004 (place), MSC0010 and MSC0011 (files that are
    there), MSC0505 (weights), MSC0532 (layout).
    """
    inputs = random_inputs(program.signature.inputs, _SEED)
    results = interpret(read_model(compilation.model.path, compilation.options), inputs)
    updated = {tensor.result for tensor in program.signature.inputs}
    outputs = [result for number, result in enumerate(results) if number not in updated]
    tolerances = [Tolerance().scaled(output) for output in outputs]
    stored = StoredOrders(program.signature.inputs).stored(inputs)
    golden = Golden(stored, outputs, [(t.absolute, t.relative) for t in tolerances])
    write_bundle(program, compilation.parameters(), golden, folder, guard, compilation.options.layout)
