"""MODEL on the command line to a module: its extension says its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from msc.driver.options import CompileOptions
from msc.driver.passes.legality import verify_stage
from msc.driver.passes.registry import new_context
from msc.formats.format import Format
from msc.formats.registry import format_of, imported_extensions, ir_format
from msc.interp import WeightSource
from msc.ir.verification import verify_module
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.files import near_file
from msc.support.other_frameworks import file_advice
from msc.support.streams import has_place, is_stream
from msc.weights.module_weights import Weights

if TYPE_CHECKING:
    from msc.importers.imported import Imported


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
    has_file: bool = True

    @staticmethod
    def in_memory(imported: Imported, backend: Backend, name: str = "model") -> LoadedModel:
        """A model at the graph stage that no file holds."""
        folder, context = Path(name).parent, new_context(backend)
        return LoadedModel(name, imported.module, GRAPH, folder, imported.sources, context, imported, has_file=False)

    def copy(self) -> LoadedModel:
        """The same with a module of its own, which a compilation may change."""
        return replace(self, module=self.module.clone())

    def at(self, sizes: tuple[int, ...]) -> LoadedModel | None:
        """The model at other sizes, if it came with it: one that may be changed."""
        sample = None if self.imported is None else self.imported.samples.get(sizes)
        if sample is None:
            return None
        return replace(self, module=sample.module.clone(), imported=sample, context=self.context.clone())

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
    format_ = model_format(model, options)
    with sizes_in_mind(options.open_dims):
        if format_.holds == "ir":
            return _read_stage(model, options)
        imported = format_.read(model, options.reading())
        verify_module(imported.module, imported.sources)
        fix_dimensions(imported.module, {})
        leave_open(imported.module, options.open_dims)
        context, folder = new_context(options.backend), Path(model).parent
        return LoadedModel(model, imported.module, GRAPH, folder, imported.sources, context, imported)


def model_format(model: str, options: CompileOptions) -> Format:
    """The format of a model file; a stage that is named says that it is msc's own. Raises MSC0006 for no format."""
    if options.start is not None or is_stream(model) or options.backend.table.of_file(model) is not None:
        return ir_format()
    found = format_of(model)
    if found is None or found.holds in ("ir", "weights"):
        stages = (stage.extension for stage in options.backend.table.ir)
        raise MscError(_unknown_kind(model, (*stages, *imported_extensions())))
    return found


def _read_stage(model: str, options: CompileOptions) -> LoadedModel:
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
    context = new_context(options.backend)
    read = ir_format().read(model, options.reading(lambda: context))
    module, sources = read.module, read.sources
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


def stage_of_model(model: str, table: StageTable, start: str | None = None) -> Stage:
    """The stage at which a file of msc's own text enters; what no name tells is a graph. Raises MSC0006."""
    return _named(start, table) if start is not None else table.of_file(model) or GRAPH


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
