"""Memory that a caller gives for the results of a call: refused where the model would write beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from msc.runtime.arguments import numpy_dtype
from msc.runtime.program import Signature, TensorSpec
from msc.support.argument_values import described
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.wording import counted


def check_outputs(
    signature: Signature, sizes: Sequence[int], inputs: Sequence[Array], outputs: object, *, shared: bool = False
) -> None:
    """Check arrays for the outputs of a call of these sizes on these inputs; `shared` ones may overlap each other.

    Raises MSC0613.
    """
    specs = signature.outputs
    if not isinstance(outputs, list | tuple):
        raise _refused(f"the model writes to a list of {counted(len(specs), 'array')}, got {described(outputs)}")
    given = cast("list[object] | tuple[object, ...]", outputs)
    if len(given) != len(specs):
        raise _refused(f"the model writes {counted(len(specs), 'output')}, got {counted(len(given), 'array')}")
    seen = list(inputs)
    for item, tensor in zip(given, specs, strict=True):
        array = cast(Array, item) if isinstance(item, np.ndarray) else None
        reason = _objection(array, tensor, tensor.valid_shape(sizes))
        if array is None or reason is not None:
            raise _refused(f"memory for output '{tensor.name}' {reason}")
        if any(np.may_share_memory(array, other) for other in seen):
            raise _refused(f"memory for output '{tensor.name}' is shared with an input or another output")
        if not shared:
            seen.append(array)


def _objection(array: Array | None, tensor: TensorSpec, shape: tuple[int, ...]) -> str | None:
    dtype = numpy_dtype(tensor.dtype)
    if array is None:
        return "is no array"
    if array.dtype != dtype:
        return f"has dtype {array.dtype}, expected {dtype}"
    if array.shape != shape:
        return f"has shape {list(array.shape)}, expected {list(shape)}"
    if not array.flags.writeable:
        return "is read-only"
    if tensor.is_dense or shape == tensor.shape:
        return None if array.flags.c_contiguous else "is not C-contiguous"
    return None if _begins(array, tensor.shape) else f"is not the first part of an array of shape {list(tensor.shape)}"


def _begins(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether an array is a view of the first part of a whole one of this shape."""
    whole: object = array.base
    if not isinstance(whole, np.ndarray):
        return False
    fits = whole.flags.c_contiguous and whole.shape == shape
    return fits and whole.ctypes.data == array.ctypes.data and whole.strides == array.strides


def check_seconds(seconds: object, calls: int) -> None:
    """Check the array that clocks add to. Raises MSC0613."""
    array = cast(Array, seconds) if isinstance(seconds, np.ndarray) else np.empty(0)
    fits = array.dtype == np.float64 and array.shape == (calls,) and isinstance(seconds, np.ndarray)
    if not fits or not array.flags.c_contiguous or not array.flags.writeable:
        raise _refused(f"'seconds' is no array of {counted(calls, 'float64')}, one for each kernel call")


def _refused(message: str) -> MscError:
    return MscError(Diagnostic("MSC0613", message, help="new_outputs() makes arrays that fit"))
