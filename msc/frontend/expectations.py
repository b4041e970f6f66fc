"""What functions expect of the elements of integer tensors: looked at now, or in each compiled call."""

from __future__ import annotations

import numpy as np

from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.errors import at_user_line
from msc.frontend.reader.session import Session
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.tape import TapeValue
from msc.graph.index_checks import Expected
from msc.support.diagnostics import MscError


def expect_labels(function: str, labels: Tensor, classes: int, but: int | None = None) -> None:
    """Labels are classes, counted from 0, or `but`. Raises MSC0610, perhaps when the compiled graph is called."""
    kept = "" if but is None else f", or {but} where an example is ignored"
    help_ = f"labels of {classes} classes are 0 to {classes - 1}{kept}"
    _expect(labels, classes - 1, f"{function}: label", f"the {classes} classes", but, help_)


def expect_index(index: Tensor, size: int) -> None:
    """Elements of an index into an axis; negative ones count from its end. Raises MSC0610, as for labels.

    Of elements that are known, what indexes by them says it (MSC0815).
    """
    if not isinstance(index.content, np.ndarray):
        _expect(index, size - 1, "index", f"a dimension of size {size}", low=-size)


def stays_within(x: Tensor, low: int, high: int) -> None:
    """What was expected of other values says that the elements of x are in this range."""
    builder, content = INSTALLED.builder, x.content
    if isinstance(builder, Session) and isinstance(content, Symbol):
        builder.graph.within.append((content.ssa, (low, high)))


def _expect(
    x: Tensor, high: int, what: str, whole: str, but: int | None = None, help: str | None = None, low: int = 0
) -> None:
    builder, content = INSTALLED.builder, x.content
    array = content.array if isinstance(content, TapeValue) else content
    if isinstance(array, np.ndarray):
        try:
            Expected(low, high, what, whole, but, help).check(array)
        except MscError as error:
            first = error.diagnostics[0]
            raise MscError(at_user_line(first.code, first.message, help=first.help)) from None
    elif isinstance(builder, Session) and isinstance(content, Symbol):
        builder.graph.expect(content.ssa, Expected(low, high, what, whole, but, help))
