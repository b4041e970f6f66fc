"""MODEL on the command line to a module: `.mir` and the later stage files; the extension decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from msc.backends.backend import Backend
from msc.backends.registry import find_backend
from msc.backends.stage import COMMON, GRAPH, Stage, StageTable
from msc.dialects.ms.attributes import MS_WEIGHTS
from msc.dialects.ms.interface_attributes import check_interface
from msc.dialects.ms.target import TargetAttr, target_attribute
from msc.driver.models.dimensions import fix_dimensions, leave_open, sizes_in_mind
from msc.driver.models.entry import entry_function
from msc.driver.models.onnx_models import EXTENSION, is_onnx, load_onnx
from msc.driver.options import CompileOptions
from msc.driver.passes.legality import verify_stage
from msc.driver.passes.registry import new_context
from msc.interp import WeightSource
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.files import near_file, read_source, source_name
from msc.support.other_frameworks import file_advice
from msc.support.streams import has_place, is_stream
from msc.weights.module_weights import Weights

if TYPE_CHECKING:
    from msc.importers.onnx import Imported


@dataclass(frozen=True)
class LoadedModel:
    """A module that has been read and verified: its stage, its weights' folder, its source texts by file name."""

    path: str
    module: ModuleOp
    stage: Stage
    folder: Path
    sources: Mapping[str, str]
    context: Context
    imported: Imported | None = None
    """What the module was imported from, where it is of another format: it has the parameters' data."""

    def weights(self) -> WeightSource:
        """The parameters' data, mapped. Raises MSC0301 to MSC0306."""
        return Weights.of_module(self.module, self.folder) if self.imported is None else self.imported.weights

    def weight_files(self) -> tuple[str, ...]:
        """The files that `weights` reads, relative to the folder."""
        if self.imported is not None:
            return self.imported.files
        name = self.module.attributes.get(MS_WEIGHTS)
        return (name.data,) if isinstance(name, StringAttr) and self.weights() else ()


def read_model(model: str, options: CompileOptions) -> LoadedModel:
    """Read a model, fix the sizes it leaves open, verify it and run the verifiers of its stage.

    Raises MSC0006 for a file of unknown kind, MSC0001 to MSC0003 for an unreadable one, and what is wrong in it.
    """
    with sizes_in_mind(options.open_dims):
        return _read_onnx(model, options) if is_onnx(model) and options.start is None else _read_mir(model, options)


def _read_mir(model: str, options: CompileOptions) -> LoadedModel:
    stage = stage_of_model(model, options.backend.table, options.start)
    module, context, sources = parse_model(model, options)
    fix_dimensions(module, options.largest_dims, options.shapes)
    leave_open(module, options.open_dims)
    return LoadedModel(model, module, stage, options.weights or folder_of(model), sources, context)


def folder_of(model: str) -> Path:
    """Where a model's weights lie: beside it, or in the working folder if it comes through a descriptor."""
    return Path(model).parent if has_place(model) else Path()


def parse_model(model: str, options: CompileOptions) -> tuple[ModuleOp, Context, Mapping[str, str]]:
    """A stage file verified, before its open sizes are known; its context and its text by file name."""
    stage = stage_of_model(model, options.backend.table, options.start)
    text, name = read_source(Path(model)), source_name(model)
    sources, context = {name: text}, new_context(options.backend)
    module = parse_module(context, text, name)
    verify_module(module, sources)
    check_interface(module, sources)
    if options.start is None:
        _check_backend_of_file(model, module, options.backend)
    verify_stage(module, stage, context, sources, options.backend.table.ir)
    entry_function(module)
    return module, context, sources


def _check_backend_of_file(model: str, module: ModuleOp, backend: Backend) -> None:
    """Raise MSC0506 for a file of a stage that only another back end has, before its operations are looked at."""
    said = target_attribute(module)
    if said is None or said.backend.data == backend.name:
        return
    stage = find_backend(said.backend.data).table.of_file(model)
    if stage is not None and stage not in COMMON:
        raise made_for_another(model, said, backend)


def made_for_another(model: str, said: TargetAttr, backend: Backend) -> MscError:
    """The error for a stage file of another back end."""
    message = f"'{model}' was made for the target '{said.backend.data}', not for '{backend.name}'"
    return MscError(Diagnostic("MSC0506", message, help=f"--target {said.backend.data} goes on with it"))


def _read_onnx(model: str, options: CompileOptions) -> LoadedModel:
    """An ONNX file at the graph stage; its external data are its files."""
    imported = load_onnx(model, options)
    verify_module(imported.module)
    fix_dimensions(imported.module, {})
    leave_open(imported.module, options.open_dims)
    return LoadedModel(model, imported.module, GRAPH, Path(model).parent, {}, new_context(options.backend), imported)


def stage_of_model(model: str, table: StageTable, start: str | None = None) -> Stage:
    """The stage at which a model enters. Raises MSC0006 when nothing tells."""
    if start is not None:
        return _named(start, table)
    stage = table.of_file(model)
    if stage is None and (is_onnx(model) or is_stream(model)):
        return GRAPH
    if stage is None:
        raise MscError(_unknown_kind(model, (*(s.extension for s in table.ir), EXTENSION)))
    return stage


def _unknown_kind(model: str, known: Sequence[str]) -> Diagnostic:
    """What to say of a file that is no model by its name: whose it is, or which file beside it is meant."""
    path = Path(model)
    if path.is_dir():
        return Diagnostic("MSC0006", f"'{model}' is a folder, not a model; msc reads {', '.join(known)}")
    near = near_file(path)
    foreign = file_advice(path.name)
    if foreign is not None and (path.exists() or near is None):
        owner, advice = foreign
        return Diagnostic("MSC0006", f"'{model}' is of a kind that msc does not read: {owner}", help=advice)
    message = f"'{model}' is of a kind that msc does not read; it reads {', '.join(known)}"
    notes = () if path.exists() else ("there is no such file",)
    help_ = near or "--from STAGE says what a file of another name is"
    return Diagnostic("MSC0006", f"{message}; run, bench and inspect also take a .so", notes=notes, help=help_)


def _named(name: str, table: StageTable) -> Stage:
    names = [stage.name for stage in table.ir]
    if name not in names:
        message = f"there is no stage '{name}' to start from; there are {', '.join(names)}"
        raise MscError(Diagnostic("MSC0006", message, help=did_you_mean(name, names)))
    return table[name]
