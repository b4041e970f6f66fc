"""`msc compile`: a model to any of its later forms."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from msc.driver.options import CompileOptions, Reporting, parse_size
from msc.driver.verbs.completion import files, forms, one_of, stages
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import Verb, say

if TYPE_CHECKING:
    from msc.driver.artifacts.forms import Output
    from msc.driver.compile import Step

from msc.driver.calibration_files import read_configuration
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.catalogue import machine_named


@click.command(name="compile", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("-o", "--output", "out", metavar="OUT", help="Where to; its extension says what. Default: C, to stdout.")
@click.option(
    "--emit",
    metavar="FORM",
    help="graph, opt, gk, loop, c, obj, archive, so, exe or bundle.",
    shell_complete=one_of(forms),
)
@click.option(
    "--stop-after",
    metavar="STAGE",
    help="The same as --emit, for a stage: graph, opt, gk, loop or c.",
    shell_complete=one_of(stages),
)
@click.option("--name", metavar="NAME", help="Prefix of every C name. Default: the module's.")
@click.option("--dump-stages", metavar="FOLDER", help="Write the text of every stage there.")
@click.option("--print-ir-after", multiple=True, metavar="PASS|all|changed", help="Print the module to stderr then.")
@click.option("--verify-each", is_flag=True, help="Verify after every pass, not after every stage alone.")
@click.option("--timing", is_flag=True, help="Print what each step took to stderr.")
@click.option("--save-temps", metavar="FOLDER", help="Keep the files that the C compiler gets.")
@click.option("--profile", is_flag=True, help="Add a clock around every kernel, for msc bench.")
@click.option("--ram-limit", metavar="SIZE", help="Refuse a model whose workspace and stack take more, e.g. 64K.")
@click.option("--rom-limit", metavar="SIZE", help="Refuse a model whose weights and code take more.")
@click.option("--stack-limit", metavar="SIZE", help="Refuse a model of which a call takes more of the stack.")
@click.option("--layout", metavar="NAME", help="Of a .bundle for firmware: zephyr, arduino, esp-idf or lite.")
@click.option("--config", metavar="FILE.cfg", help="Take [micro_param] of MindSpore Lite's configuration.")
@click.option("--force", is_flag=True, help="Let OUT be an input, or replace files that msc did not write.")
@click.option("--no-cache", is_flag=True, help="Do not look for an earlier result.")
@with_compile_options
def command(
    model: str,
    out: str | None,
    emit: str | None,
    stop_after: str | None,
    name: str | None,
    dump_stages: str | None,
    print_ir_after: tuple[str, ...],
    verify_each: bool,
    timing: bool,
    save_temps: str | None,
    profile: bool,
    ram_limit: str | None,
    rom_limit: str | None,
    stack_limit: str | None,
    layout: str | None,
    config: str | None,
    force: bool,
    no_cache: bool,
    options: CompileOptions,
) -> None:
    """Compile MODEL, a .mir or any later stage file, to OUT: a later stage, .c, .o, .so, a program or a .bundle.

    Example: msc compile lenet5.mir -o lenet5.so --timing
    """
    from msc.driver.artifacts.forms import choose_output
    from msc.driver.verbs.applicable_options import C, idle_options
    from msc.driver.verbs.model_options import given_options
    from msc.support.outputs import written_files

    if out is None and sys.stdout is not None and sys.stdout.isatty():
        raise click.UsageError("a terminal is no place for hundreds of lines; -o FILE names a file, -o - means it")
    output = choose_output(emit, out, stop_after, options.backend)
    last = output.form if output.form == output.last_stage else C
    if layout is not None and output.form != "bundle":
        raise click.UsageError("--layout is of a bundle: -o NAME.bundle")
    for option in idle_options(given_options(click.get_current_context()), last, options.backend):
        say(f"note: {option} changes nothing up to stage '{last}'", err=True)
    reporting = Reporting(frozenset(print_ir_after), _folder(dump_stages), verify_each, _path(save_temps), force)
    limits = {"ram_limit": ram_limit, "rom_limit": rom_limit, "stack_limit": stack_limit}
    bytes_ = {name: parse_size(limit) for name, limit in limits.items() if limit is not None}
    with written_files() as written:
        if config is not None:
            options, name, layout = _configured(options, name, layout, micro_options(Path(config)))
        of_bundle = {"name": name or ("net" if layout == "lite" else None), "layout": layout or ""}
        made = replace(options, profile=profile, **bytes_, **of_bundle)
        _compile(model, output, made, reporting, timing, not no_cache)
    _tell(output, written, (reporting.dump, reporting.save_temps))


def _configured(
    options: CompileOptions, name: str | None, layout: str | None, found: Mapping[str, Any]
) -> tuple[CompileOptions, str | None, str | None]:
    """With what a configuration says where the command line says nothing."""
    threads = options.threads if options.threads is not None else found["threads"]
    configured = replace(options, march=options.march or found["march"], threads=threads)
    return configured, name or found["name"], found["layout"] if layout is None else layout


def _compile(
    model: str, output: Output, options: CompileOptions, reporting: Reporting, timing: bool, use_cache: bool
) -> None:
    if output.form == "so" and output.path is not None and not timing:
        from msc.driver.artifacts.libraries import library_of
        from msc.support.outputs import OutputGuard

        named = (Path(model), *(() if options.tuned is None else (options.tuned,)))
        OutputGuard(named, reporting.force).check_inputs(output.path)
        library = library_of(model, options, reporting, use_cache=use_cache)
        library.place(output.path, OutputGuard(library.inputs, reporting.force))
        return
    from msc.driver.artifacts.emission import emit

    compilation = emit(model, output, options, reporting, force=reporting.force)
    if timing:
        say(timing_table(compilation.steps), err=True)


def _tell(output: Output, written: Sequence[Path], folders: Sequence[Path | None]) -> None:
    """Say which files there are now: those of the output, and the folders that were asked for."""
    from msc.support.outputs import destination

    if output.path is None or destination(output.path).is_stream:
        return
    beside = [path for path in written if path.parent == output.path.parent and path != output.path]
    names = [output.path, *beside, *(folder for folder in folders if folder is not None)]
    say(f"wrote {', '.join(map(str, dict.fromkeys(names)))}", err=True)


def _folder(name: str | None) -> Path | None:
    """The folder for stage files, made if need be. Raises MSC0004."""
    if name is None:
        return None
    from msc.support.files import make_folder

    return make_folder(Path(name))


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def timing_table(steps: Sequence[Step]) -> str:
    """One line a step, one a stage and one for all, in milliseconds."""
    lines = [f"{'stage':<10}{'step':<24}{'ms':>10}"]
    for stage in dict.fromkeys(step.stage for step in steps):
        members = [step for step in steps if step.stage == stage]
        lines += [f"{stage:<10}{step.name:<24}{step.seconds * 1e3:>10.2f}" for step in members]
        lines.append(f"{stage:<10}{'':<24}{_milliseconds(members):>10.2f} in all")
    lines.append(f"{'total':<34}{_milliseconds(steps):>10.2f}")
    return "\n".join(lines)


def _milliseconds(steps: Sequence[Step]) -> float:
    return sum(step.seconds for step in steps) * 1e3


# Section `[micro_param]` of a configuration of MindSpore Lite's converter: what its code generator is told.
_MACHINES = {"x86": "x86-64-v3", "arm64": "neon", "arm32": "armv7-a", "cortex-m": "cortex-m4"}
"""By the name of a target there; of Cortex-M the most common with the instructions that its library uses."""
_KNOWN = frozenset(
    {"enable_micro", "target", "codegen_mode", "support_parallel", "debug_mode", "save_path", "project_name"}
)


def micro_options(path: Path) -> dict[str, Any]:
    """The options of `msc compile` that it says: march, threads, name and layout. Raises MSC0001 and MSC0533."""
    parser = read_configuration(path, "MSC0533")
    if not parser.has_section("micro_param"):
        raise _failure(path, "it has no section [micro_param]")
    given = dict(parser["micro_param"])
    unknown = sorted(given.keys() - _KNOWN)
    if unknown:
        raise _failure(path, f"micro_param has no '{unknown[0]}'; msc reads {', '.join(sorted(_KNOWN))}")
    if not _flag(path, given, "enable_micro", default=True):
        raise _failure(path, "enable_micro is false: it asks for no code")
    mode = given.get("codegen_mode", "Inference")
    if mode.lower() != "inference":
        raise _failure(path, f"codegen_mode is {mode}; msc generates the code of a training step from a Python step")
    target = given.get("target", "x86").lower()
    if target not in _MACHINES:
        raise _failure(path, f"target is {given['target']}; it is one of x86, ARM64, ARM32, Cortex-M")
    march = _MACHINES[target]
    return {
        "march": march,
        "threads": 0 if _flag(path, given, "support_parallel", default=False) else None,
        "name": given.get("project_name", "net"),
        "layout": "lite" if machine_named(march).is_bare else "",
    }


def _flag(path: Path, given: dict[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise _failure(path, f"{name} is {given[name]}; it is true or false")
    return text == "true"


def _failure(path: Path, message: str) -> MscError:
    return MscError(Diagnostic("MSC0533", f"'{path}': {message}"))
