"""Models compiled for a machine and called there, each call a process."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from msc.driver.compile import compile_read, generate_c
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.runtime.arguments import Checker
from msc.runtime.build import BuildOptions
from msc.runtime.flags import WARNING_FLAGS
from msc.runtime.open_calls import OpenCalls
from msc.runtime.program import Signature, TensorSpec
from msc.runtime.stored_order import StoredOrders
from tests.targets.machines import Host
from tests.unit.compiled.processes import Array, Process, process


@dataclass(frozen=True)
class Elsewhere:
    """A compiled model as a process, called as `CompiledModel` is."""

    process: Process

    @property
    def signature(self) -> Signature:
        """What it takes and gives."""
        return self.process.signature

    def __call__(self, *arrays: Array, **named: Array) -> Any:
        outputs = self.results(*arrays, **named)
        return outputs[0] if len(outputs) == 1 else outputs

    def results(self, *arrays: Array, **named: Array) -> tuple[Array, ...]:
        """The outputs, and the inputs that the call updates.

        Raises MSC0601 to MSC0604, and AssertionError with what the process says.
        """
        signature = self.signature
        given = StoredOrders(signature.inputs).stored(Checker(signature.inputs).arranged(arrays, named))
        call = OpenCalls(signature).of(given)
        sizes, checked = call.sizes, call.checker.check(tuple(given), {})
        inputs = [_whole(array, tensor) for array, tensor in zip(checked, signature.inputs, strict=True)]
        results = zip(self.process.outputs(inputs, sizes), signature.results, strict=True)
        return tuple(_seen(result[tuple(map(slice, tensor.valid_shape(sizes)))], tensor) for result, tensor in results)


def _seen(array: Array, tensor: TensorSpec) -> Array:
    """A result with its axes in the order in which people see them."""
    return array.transpose(tensor.public_order) if tensor.order else array


def _whole(array: Array, tensor: TensorSpec) -> Array:
    """The array at the beginning of one of the largest sizes."""
    memory = np.zeros(tensor.shape, array.dtype)
    memory[tuple(slice(n) for n in array.shape)] = array
    return memory


def compiled(
    model: LoadedModel, options: CompileOptions, machine: Host, flags: Sequence[str], folder: Path
) -> Elsewhere:
    """The model built for the machine, with `flags` after msc's own, in a new folder inside `folder`.

    Raises MscError, and AssertionError with what the C compiler says.
    """
    compilation = compile_read(model, replace(options, march=machine.march))
    program, weights = generate_c(compilation), compilation.parameters()
    if machine.portable:
        program = replace(program, march=())
    build_options = BuildOptions((*WARNING_FLAGS, *flags), toolchain=machine.toolchain)
    place = Path(tempfile.mkdtemp(dir=folder))
    return Elsewhere(process(program, weights, place, build_options, machine.command))
