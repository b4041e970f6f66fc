"""How reading stops where a graph cannot go on: caught by the reader itself, never seen by users."""

from __future__ import annotations

from types import CodeType

from msc.support.diagnostics import Diagnostic


class Refusal(BaseException):
    """Something that a graph cannot express stands at a place: the innermost construct that can do without it goes on.

    No subclass of Exception: the handlers of user code, which run while it is read, must not catch it.
    """

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help
        self.diagnostic: Diagnostic | None = None
        """With the place, as soon as the innermost frame has added it."""


class Recursion(Refusal):
    """A function calls itself on a path that a tensor decides: the outermost call may make a loop of it."""

    def __init__(self, function: CodeType) -> None:
        super().__init__(
            "MSC0846",
            f"'{function.co_name}' calls itself where a tensor decides whether it does, and not in tail position",
            help="return the call itself, as in `return f(x, n - 1)`, or write a while loop",
        )
        self.function = function
