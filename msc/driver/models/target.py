"""What a model is compiled for: by the options, by what its stage file says, or by the back end's defaults."""

from __future__ import annotations

import sys
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp, StringAttr

from msc.analysis.target import DEFAULT_THREADS
from msc.backends.stage import COMMON
from msc.dialects.ms.target import TargetAttr, set_target, target_attribute
from msc.driver.models.reading_models import LoadedModel, made_for_another
from msc.driver.options import CompileOptions
from msc.support.escaping import printable
from msc.support.wording import counted


def note_target(model: LoadedModel, options: CompileOptions) -> None:
    """Say in the module what it is compiled for.

    Kernels in a stage file were chosen for the target that it names. Going on for another one gives a program that is
    right but may be slow, so a note on standard error tells of it. Raises as `target_for`.
    """
    said, wanted = target_attribute(model.module), target_for(model, options)
    if said is not None and _differ(said, wanted) and model.stage not in COMMON:
        note = f"'{model.path}' was made for {_text(said)}; from here on it is compiled for {_text(wanted)}"
        print(f"note: {printable(note)}", file=sys.stderr)
    set_target(model.module, wanted)


def _differ(said: TargetAttr, wanted: TargetAttr) -> bool:
    """Whether two targets differ; a file that a person wrote need not describe a machine such as `native`."""
    described = said.described if isinstance(said.described, StringAttr) else wanted.described
    return TargetAttr(said.backend, said.machine, said.threads, described) != wanted


def target_for(model: LoadedModel, options: CompileOptions) -> TargetAttr:
    """What the options say, else the module, else the back end's defaults.

    Raises MSC0501 for a machine that is not known, MSC0506 for a stage file of another back end, and MSC0534 for
    threads that the machine does not have.
    """
    said, backend = target_attribute(model.module), options.backend
    if said is not None and said.backend.data != backend.name:
        if model.stage not in COMMON:
            raise made_for_another(model.path, said, backend)
        said = None
    machine = backend.default_machine if said is None else said.machine.data
    threads = DEFAULT_THREADS if said is None else said.threads.data
    machine = machine if options.march is None else options.march
    threads = threads if options.threads is None else options.threads
    backend.check_threads(machine, threads)
    return TargetAttr.of(backend.name, machine, threads, backend.describe(machine))


def _text(target: TargetAttr) -> str:
    machine = target.described if isinstance(target.described, StringAttr) else target.machine
    return f"{target.backend.data} {machine.data}, {counted(target.threads.data, 'thread')}"


def with_target(options: CompileOptions, module: ModuleOp) -> CompileOptions:
    """The options for other modules that are compiled for the target of this one."""
    said = target_attribute(module)
    return options if said is None else replace(options, march=said.machine.data, threads=said.threads.data)
