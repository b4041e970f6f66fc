"""Counts changes of Cells and Parameters: while the count stands, what was compiled from them need not be compared."""

from __future__ import annotations

from typing import ClassVar


class Changes:
    """`count` grows whenever an attribute of any Cell, or the value of any Parameter, is replaced."""

    count: ClassVar[int] = 0
