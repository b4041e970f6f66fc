"""A model that needs more memory than allowed is refused by name, before anything is allocated for it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Operation, SSAValue

from msc.analysis.bytes import bytes_of
from msc.ir.locations import source_location
from msc.ir.typed import is_tensor
from msc.runtime.program import Signature
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.wording import size_text

_HELP = '--max-memory SIZE allows more, in Python max_memory="8G"'


def check_tensors(module: ModuleOp, limit: int) -> None:
    """Raises MSC0507 for the first tensor that alone is larger than the limit."""
    for op, value in _values(module):
        if is_tensor(value.type) and DYNAMIC_INDEX not in value.type.get_shape():
            size = bytes_of(value)
            if size > limit:
                message = f"a {value.type} takes {size_text(size)}; the limit is {size_text(limit)}"
                raise MscError(Diagnostic("MSC0507", message, source_location(op), help=_HELP))


def _values(module: ModuleOp) -> Iterator[tuple[Operation, SSAValue]]:
    for op in module.walk():
        yield from ((op, result) for result in op.results)
        yield from ((op, a) for region in op.regions for block in region.blocks for a in block.args)


def check_total(signature: Signature, limit: int) -> None:
    """Raises MSC0507 when weights, workspace, inputs and outputs together exceed the limit."""
    tensors = sum(tensor.bytes for tensor in (*signature.inputs, *signature.outputs))
    parts = {"weights": signature.weights_bytes, "workspace": signature.workspace_bytes, "inputs and outputs": tensors}
    total = sum(parts.values())
    if total > limit:
        detail = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items())
        message = f"the model needs {size_text(total)}; the limit is {size_text(limit)}"
        raise MscError(Diagnostic("MSC0507", message, notes=(detail,), help=_HELP))
