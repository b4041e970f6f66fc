"""Output forms: which one a file name or `--emit` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msc.driver.stages import STAGE, stage_of_file
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

FORMS = ("graph", "opt", "gk", "loop", "c", "obj", "so", "exe", "bundle", "onnx")
"""What `--emit` takes."""

_SUFFIXES: Mapping[str, str] = {
    ".c": "c", ".o": "obj", ".so": "so", ".exe": "exe", "": "exe", ".bundle": "bundle", ".onnx": "onnx",
}  # fmt: skip
_BINARY = ("obj", "so", "exe", "bundle", "onnx")


@dataclass(frozen=True)
class Output:
    """What to make and where: a `path` of None is the standard output."""

    form: str
    path: Path | None

    @property
    def has_weights(self) -> bool:
        """Whether making it takes the values of the weights: stage files only name them."""
        return self.form != self.last_stage

    @property
    def last_stage(self) -> str:
        """The IR stage that it is made of."""
        if self.form == "onnx":
            return "graph"
        return self.form if self.form in STAGE and STAGE[self.form].is_text_of_ir else "loop"


def choose_output(emit: str | None, out: str | None) -> Output:
    """The output that `--emit` and `-o` ask for. Raises MSC0007 when they do not say; MSC0004 when there is no
    folder for it, which is better told before the work than after it.
    """
    if emit is not None and emit not in FORMS:
        message = f"there is no form '{emit}' to emit; there are {', '.join(FORMS)}"
        raise MscError(Diagnostic("MSC0007", message, help=did_you_mean(emit, FORMS)))
    form = emit or _form_of(out)
    if (out is None or out == "-") and (form in _BINARY):
        raise MscError(Diagnostic("MSC0007", f"form '{form}' is not text", help="name a file with -o"))
    output = Output(form, None if out is None or out == "-" else Path(out))
    if output.path is not None and not output.path.parent.is_dir():
        message = f"cannot write '{out}': there is no folder '{output.path.parent}'"
        raise MscError(Diagnostic("MSC0004", message))
    return output


def _form_of(out: str | None) -> str:
    if out is None or out == "-":
        return "c"
    stage = stage_of_file(out)
    if stage is not None:
        return stage.name
    suffix = Path(out).suffix
    if out.endswith("/") or Path(out).is_dir():
        return "bundle"
    if suffix not in _SUFFIXES:
        known = ", ".join(s for s in _SUFFIXES if s)
        message = f"the extension of '{out}' does not say what to make; known: .mir and later stages, {known}"
        raise MscError(Diagnostic("MSC0007", message, help=f"--emit names the form: {', '.join(FORMS)}"))
    return _SUFFIXES[suffix]
