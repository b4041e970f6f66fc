"""Operations made ready to run on arrays: verified once for element types and shapes, then only called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from msc.dialects.arrays import BFLOAT16, Array, tensor_dtype
from msc.dialects.element_types import element_type
from msc.dialects.ms import OPERATIONS
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.properties import kind_of, takes
from msc.frontend.capture import Property
from msc.frontend.dtypes import DType, of_numpy
from msc.frontend.errors import ApiTypeError, ApiValueError, at_user_line
from msc.interp.registry import meaning_of
from msc.ir.errors import DtypeConflict, code_of, help_of
from msc.support.diagnostics import MscError

_NARROW = (np.dtype(np.float16), BFLOAT16)


class Prepared:
    """An operation for operands of certain element types and shapes; `run` is `evaluate_op` without checks."""

    __slots__ = ("_block", "_dtypes", "_meaning", "_op", "_widened")

    def __init__(self, op: MsOp, block: Block, dtypes: Sequence[np.dtype[Any]]) -> None:
        self._op = op
        self._block = block
        self._meaning = meaning_of(op)
        self._dtypes = [tensor_dtype(op.result_tensor(i)) for i in range(len(op.results))]
        self._widened = any(dtype in _NARROW for dtype in dtypes)

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The results on arrays of the element types and shapes that this was made for."""
        if self._widened:
            arrays = [a.astype(np.float32) if a.dtype in _NARROW else a for a in arrays]
        try:
            with np.errstate(all="ignore"):
                results = self._meaning(self._op, *arrays)
                values = results if isinstance(results, tuple) else (results,)
                return tuple([np.asarray(v).astype(d, copy=False) for v, d in zip(values, self._dtypes, strict=True)])
        except MscError as error:
            first = error.diagnostics[0]
            raise MscError(at_user_line(first.code, first.message, help=first.help, notes=first.notes)) from None


def prepare(name: str, arrays: Sequence[Array | None], properties: Mapping[str, Property]) -> Prepared:
    """Build and verify `ms.<name>` for operands like `arrays`. Raises the operation's errors at the user's line."""
    present = [a for a in arrays if a is not None]
    block = Block(arg_types=[TensorType(element_type(of_numpy(a.dtype).ir), a.shape) for a in present])
    places = iter(block.args)
    op = built(name, [None if a is None else next(places) for a in arrays], properties)
    return Prepared(op, block, [a.dtype for a in present])


def built(name: str, operands: Sequence[SSAValue | None], properties: Mapping[str, Property]) -> MsOp:
    """`ms.<name>` on operands. At the user's line it raises what is verified, and MSC0203 for wrong properties."""
    definition, values = operation(name), plain(properties)
    declared = definition.get_irdl_definition().properties
    for key, value in values.items():
        if value is not None and key in declared and not takes(declared[key], value):
            message = f"{name}: {key} is {properties[key]!r}; it must be {kind_of(declared[key])}"
            raise ApiTypeError("MSC0203", message)
    try:
        return definition(*operands, **values)
    except VerifyException as error:
        raise api_error(error) from None


@cache
def _operations() -> dict[str, type[MsOp]]:
    return {o.name.removeprefix("ms."): o for o in OPERATIONS if issubclass(o, MsOp)}


def operation(name: str) -> type[MsOp]:
    """The class of `ms.<name>`."""
    return _operations()[name]


def plain(properties: Mapping[str, Property]) -> dict[str, Any]:
    """Properties as operations take them: element types as attributes."""
    return {name: element_type(v.ir) if isinstance(v, DType) else v for name, v in properties.items()}


def api_error(error: VerifyException) -> MscError:
    """What an operation refuses, as an error at the user's line."""
    kind = ApiTypeError if isinstance(error, DtypeConflict) else ApiValueError
    advice = help_of(error)
    return kind(code_of(error), str(error), help=advice and advice.replace("ms.cast", ".astype()"))
