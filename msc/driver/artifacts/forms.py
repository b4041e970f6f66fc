"""Output forms: which one a file name or `--emit` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msc.driver.passes.stages import STAGE, stage_of_file
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.outputs import destination

FORMS = ("graph", "opt", "gk", "loop", "c", "obj", "archive", "so", "exe", "bundle", "onnx")
"""What `--emit` takes."""
_STOPS = FORMS[: FORMS.index("c") + 1]
"""What `--stop-after` takes."""

_SUFFIXES: Mapping[str, str] = {
    **{".c": "c", ".o": "obj", ".a": "archive", ".so": "so", ".exe": "exe", "": "exe", ".bundle": "bundle"},
    ".onnx": "onnx",
}
_BINARY = ("obj", "archive", "so", "exe", "bundle", "onnx")


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


def choose_output(emit: str | None, out: str | None, stop_after: str | None = None) -> Output:
    """The output that `--emit`, or `--stop-after`, and `-o` ask for.

    Raises MSC0007 when they do not say, or contradict one another; MSC0004 when there is no folder for it, which is
    better told before the work than after it.
    """
    form = _chosen_form(emit, stop_after, out)
    if _is_standard(out) and form in _BINARY:
        raise MscError(Diagnostic("MSC0007", f"form '{form}' is not text", help="name a file with -o"))
    output = Output(form, None if out is None or _is_standard(out) else Path(out))
    if output.path is not None and not _is_folder(output.path.parent):
        message = f"cannot write '{out}': there is no folder '{output.path.parent}'"
        raise MscError(Diagnostic("MSC0004", message))
    return output


def _is_standard(out: str | None) -> bool:
    return out is None or out == "-"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _chosen_form(emit: str | None, stop_after: str | None, out: str | None) -> str:
    asked = {option: form for option, form in (("--emit", emit), ("--stop-after", stop_after)) if form is not None}
    for option, form in asked.items():
        known = FORMS if option == "--emit" else _STOPS
        if form not in known:
            subject = f"form '{form}' to emit" if known is FORMS else f"stage '{form}' to stop after"
            message = f"there is no {subject}; there are {', '.join(known)}"
            raise MscError(Diagnostic("MSC0007", message, help=did_you_mean(form, known)))
    if len(set(asked.values())) > 1:
        message = " and ".join(f"{option} ({form})" for option, form in asked.items())
        raise MscError(Diagnostic("MSC0007", f"{message} ask for different forms", help="leave one of them out"))
    return next(iter(asked.values()), None) or _form_of(out)


def _form_of(out: str | None) -> str:
    if out is None or _is_standard(out) or destination(Path(out)).descriptor is not None:
        return "c"
    stage = stage_of_file(out)
    if stage is not None:
        return stage.name
    suffix = Path(out).suffix
    if out.endswith("/") or _is_folder(Path(out)):
        return "bundle"
    if suffix not in _SUFFIXES:
        known = ", ".join(s for s in _SUFFIXES if s)
        message = f"the extension of '{out}' does not say what to make; known: .mir and later stages, {known}"
        raise MscError(Diagnostic("MSC0007", message, help=f"--emit names the form: {', '.join(FORMS)}"))
    return _SUFFIXES[suffix]
