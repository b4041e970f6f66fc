"""Output forms: which one a file name or `--emit` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msc.backends.backend import Backend
from msc.backends.registry import DEFAULT, find_backend
from msc.backends.stage import GRAPH
from msc.formats.format import Format
from msc.formats.registry import written_format, written_formats
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.files import file_to_write
from msc.support.outputs import destination


def forms_of(backend: Backend) -> tuple[str, ...]:
    """What `--emit` takes."""
    return (*own_forms(backend), *written_formats())


def own_forms(backend: Backend) -> tuple[str, ...]:
    """The stages and the forms of a back end; besides them, a graph is written in other formats."""
    return (*(stage.name for stage in backend.table.ir), *(form.name for form in backend.forms))


def suffix_of(form: str, backend: Backend) -> str:
    """The extension of a file of a form; "" for a program and for what is a folder."""
    stage, other = backend.table.named(form), written_format(form)
    if stage is not None and stage.is_text_of_ir:
        return stage.extension
    if other is not None and form not in own_forms(backend):
        return other.extensions[0]
    suffixes = next(each.suffixes for each in backend.forms if each.name == form)
    return "" if "" in suffixes or form == "bundle" else suffixes[0]


def stops_of(backend: Backend) -> tuple[str, ...]:
    """What `--stop-after` takes: the stages that are text."""
    return (*(stage.name for stage in backend.table.ir), *(form.name for form in backend.forms if form.is_text))


def _own_suffixes(backend: Backend) -> Mapping[str, str]:
    return {suffix: form.name for form in backend.forms for suffix in form.suffixes}


def _foreign_suffixes() -> Mapping[str, str]:
    return {suffix: name for name, each in written_formats().items() for suffix in each.extensions}


@dataclass(frozen=True)
class Output:
    """What to make and where: a `path` of None is the standard output."""

    form: str
    path: Path | None
    backend: Backend = field(default_factory=lambda: find_backend(DEFAULT))

    @property
    def format(self) -> Format | None:
        """The other format that a graph is written in; None for what is compiled."""
        return None if self.form in own_forms(self.backend) else written_format(self.form)

    @property
    def has_weights(self) -> bool:
        """Whether making it takes the values of the weights: stage files only name them."""
        return self.form != self.last_stage

    @property
    def last_stage(self) -> str:
        """The IR stage that it is made of."""
        if self.format is not None:
            return GRAPH.name
        table = self.backend.table
        return self.form if self.form in [stage.name for stage in table.ir] else table.last.name


def choose_output(
    emit: str | None, out: str | None, stop_after: str | None = None, backend: Backend | None = None
) -> Output:
    """The output of a back end that `--emit`, or `--stop-after`, and `-o` ask for.

    Raises MSC0007 when they do not say, or contradict one another; MSC0004 when there is no folder for it, which is
    better told before the work than after it.
    """
    backend = find_backend(DEFAULT) if backend is None else backend
    form = _chosen_form(backend, emit, stop_after, out)
    if _is_standard(out) and form not in stops_of(backend):
        raise MscError(Diagnostic("MSC0007", f"form '{form}' is not text", help="name a file with -o"))
    output = Output(form, _path(form, out), backend)
    if output.path is not None and not _is_folder(output.path.parent):
        message = f"cannot write '{out}': there is no folder '{output.path.parent}'"
        raise MscError(Diagnostic("MSC0004", message))
    if output.path is not None and form != "bundle" and _is_folder(output.path):
        help_ = "name a file; --emit bundle makes a bundle of the folder" if "bundle" in forms_of(backend) else None
        raise MscError(Diagnostic("MSC0004", f"cannot write '{out}': it is a folder", help=help_))
    return output


def _path(form: str, out: str | None) -> Path | None:
    """Where an output goes: a bundle is a folder, all else is a file."""
    if out is None or _is_standard(out):
        return None
    return Path(out) if form == "bundle" else file_to_write(out)


def _is_standard(out: str | None) -> bool:
    return out is None or out == "-"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _chosen_form(backend: Backend, emit: str | None, stop_after: str | None, out: str | None) -> str:
    asked = {option: form for option, form in (("--emit", emit), ("--stop-after", stop_after)) if form is not None}
    for option, form in asked.items():
        known = own_forms(backend) if option == "--emit" else stops_of(backend)
        if form not in known and not (option == "--emit" and form in written_formats()):
            known = forms_of(backend) if option == "--emit" else known
            subject = f"form '{form}' to emit" if option == "--emit" else f"stage '{form}' to stop after"
            message = f"there is no {subject}; there are {', '.join(known)}"
            raise MscError(Diagnostic("MSC0007", message, help=did_you_mean(form, known)))
    if len(set(asked.values())) > 1:
        message = " and ".join(f"{option} ({form})" for option, form in asked.items())
        raise MscError(Diagnostic("MSC0007", f"{message} ask for different forms", help="leave one of them out"))
    return next(iter(asked.values()), None) or _form_of(backend, out)


def _form_of(backend: Backend, out: str | None) -> str:
    if out is None or _is_standard(out) or destination(Path(out)).descriptor is not None:
        return backend.forms[0].name
    stage = backend.table.of_file(out)
    if stage is not None:
        return stage.name
    suffix, own = Path(out).suffix.lower(), _own_suffixes(backend)
    suffixes = own if suffix in own else {**_foreign_suffixes(), **own}
    is_folder = out.endswith("/") or (_is_folder(Path(out)) and not (suffix and suffix in suffixes))
    if is_folder and "bundle" in forms_of(backend):
        return "bundle"
    if suffix not in suffixes:
        known = ", ".join(s for s in suffixes if s)
        message = f"the extension of '{out}' does not say what to make; known: .mir and later stages, {known}"
        raise MscError(Diagnostic("MSC0007", message, help=f"--emit names the form: {', '.join(forms_of(backend))}"))
    return suffixes[suffix]
