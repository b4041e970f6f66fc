import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from msc.backends.passes import DIALECTS, PASSES
from msc.backends.registry import find_backend
from msc.driver.cli import VERBS, command
from msc.driver.front import run_program
from msc.driver.passes.opt import OptOptions, run_opt
from msc.driver.passes.pass_manager import PassManager
from msc.driver.passes.registry import load_pass, new_context
from msc.driver.verbs.explain import explain_code
from msc.ir.reading import parse_module
from msc.support.diagnostics import Diagnostic, MscError

TABLE = find_backend("cpu").table

TEXT = "func.func @f(%x : f32) -> f32 {\n  %0 = arith.addf %x, %x : f32\n  func.return %0 : f32\n}\n"


@dataclass(frozen=True)
class Breaks(ModulePass):
    name = "breaks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, AddfOp):
                inner.operands = inner.operands[:1]


@dataclass(frozen=True)
class Fails(ModulePass):
    name = "fails"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailedException("not today")


def run_passes(*passes: ModulePass) -> tuple[Diagnostic, ...]:
    module = parse_module(new_context(), TEXT, "a.mir")
    with pytest.raises(MscError) as error:
        PassManager(new_context(), {"a.mir": TEXT}).run(module, passes)
    return error.value.diagnostics


def test_a_pass_that_breaks_the_program_is_named() -> None:
    found = run_passes(Breaks())
    assert [d.code for d in found] == ["MSC0901", "MSC0200"]
    assert "'breaks'" in found[0].message
    assert found[1].source_line == "  %0 = arith.addf %x, %x : f32"


def test_a_pass_that_fails_is_named() -> None:
    assert [d.code for d in run_passes(Fails())] == ["MSC0404"]


def test_all_registered_names_load() -> None:
    assert all(load_pass(name).name == name for name in PASSES)
    context = new_context()
    assert all(context.get_dialect(name).name == name for name in DIALECTS)


def test_passes_of_msc_are_named_alike_and_their_contracts_stand_with_their_classes() -> None:
    for name, target in PASSES.items():
        if target.startswith("msc."):
            pass_ = load_pass(name)
            assert pass_.__name__ == "".join(word.capitalize() for word in name.split("-"))
            assert sys.modules[pass_.__module__].__doc__ == f"Pass `{name}`."
            assert len((pass_.__doc__ or "").strip().splitlines()) > 2, name


def test_parts_keep_the_line_numbers_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mir"
    path.write_text(TEXT + "// -----\nbad\n// -----\n\nworse\n")
    with pytest.raises(MscError) as error:
        run_opt(str(path), OptOptions(split_input_file=True))
    assert [d.location.line for d in error.value.diagnostics if d.location] == [6, 9]
    shown = run_opt(str(path), OptOptions(split_input_file=True, verify_diagnostics=True))
    assert shown.count("// -----\n") == 2


def test_explanations() -> None:
    assert explain_code("201") == explain_code("msc0201")
    with pytest.raises(MscError, match="MSC0005"):
        explain_code("MSC1")


def test_stages_have_distinct_extensions() -> None:
    assert len({stage.extension for stage in TABLE.stages}) == len(TABLE.stages)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    context = click.Context(command)
    found = command.get_command(context, verb)
    assert found is not None
    assert "Example: msc " in found.get_help(click.Context(found, info_name=verb))


@pytest.mark.parametrize(
    ("raised", "arguments", "status", "shown"),
    [
        (MscError(Diagnostic("MSC0001", "m")), [], 1, "error[MSC0001]: m"),
        (KeyError("k"), [], 1, "error[MSC0900]: internal error: KeyError: 'k'"),
        (KeyboardInterrupt(), [], 130, ""),
        (click.UsageError("u"), [], 2, "Error: u"),
        (None, ["--nonsense"], 2, "No such option"),
        (None, [], 0, ""),
    ],
)
def test_exit_codes(
    raised: BaseException | None,
    arguments: list[str],
    status: int,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def program() -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr(sys, "argv", ["msc", *arguments])
    with pytest.raises(SystemExit) as end:
        run_program(program, "msc")
    assert end.value.code == status
    assert shown in capfd.readouterr().err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def program() -> None:
        raise KeyError

    monkeypatch.setattr(sys, "argv", ["msc", "--debug"])
    with pytest.raises(KeyError):
        run_program(program, "msc")


def test_help_is_light() -> None:
    code = "import sys, msc.driver.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"xdsl", "numpy", "islpy"} & set(loaded)


def test_a_closed_pipe_is_no_error_message() -> None:
    program = [sys.executable, "-m", "msc.driver", "explain"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert isinstance(process.stdout, io.TextIOBase)
        process.stdout.close()
        _, errors = process.communicate()
    assert "Traceback" not in errors
