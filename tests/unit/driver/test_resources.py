"""Signals, temporary folders, compilers that hang or lie, and what is read and written when little is to be had."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import choose_output
from msc.driver.front import Reports
from msc.driver.options import CompileOptions, Reporting
from msc.support import streams
from msc.support.diagnostics import MscError
from msc.support.files import read_source
from msc.support.temporary import make_temporary, sweep, temporary_folder

MSC = (sys.executable, "-m", "msc.driver")


def compiler(path: Path, body: str) -> Path:
    """A C compiler that knows its version and else does `body`."""
    path.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "fakecc 1.0"; exit 0;; esac\n{body}\n')
    path.chmod(0o755)
    return path


def failure_with(cc: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CC", str(cc))
    monkeypatch.setenv("TMPDIR", str(model.parent))
    with pytest.raises(MscError) as error:
        emit(str(model), choose_output(None, str(model.with_suffix(".exe"))), CompileOptions(), Reporting())
    return str(error.value)


def test_a_compiler_that_hangs_is_ended(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSC_CC_TIMEOUT", "0.5")
    said = failure_with(compiler(tmp_path / "cc", "exec sleep 60"), model, monkeypatch)
    assert said.startswith("error[MSC0519]: the C compiler did not end within 0.5 seconds: fakecc 1.0")
    assert "MSC_CC_TIMEOUT=SECONDS" in said


@pytest.mark.parametrize("seconds", ["soon", "-1", "nan", "0", "inf"])
def test_the_time_limit_is_a_number(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    monkeypatch.setenv("MSC_CC_TIMEOUT", seconds)
    assert "error[MSC0008]" in failure_with(compiler(tmp_path / "cc", "exit 0"), model, monkeypatch)


def test_a_compiler_that_writes_garbage(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo garbage > "$2"; shift; done'
    said = failure_with(compiler(tmp_path / "cc", body), model, monkeypatch)
    assert "error[MSC0503]" in said
    assert "is no object file" in said


def test_cc_that_is_no_command(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "error[MSC0502]" in failure_with(Path("gcc '"), model, monkeypatch)


def test_temporary_folders_go_with_their_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import os, tempfile; from msc.support.temporary import make_temporary as m; print(m('x'), flush=True); "
    dead = subprocess.check_output(
        [sys.executable, "-c", f"{script} os._exit(0)"], text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    ).strip()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "msc-theirs").mkdir()
    (tmp_path / "msc-link").symlink_to(dead)
    assert Path(dead).is_dir()
    with temporary_folder("y") as mine:
        assert mine.stat().st_mode & 0o777 == 0o700
        sweep(tmp_path)
        assert mine.is_dir()
        assert not Path(dead).exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["msc-link", "msc-theirs"]


def test_no_room_for_temporary_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(MscError, match="MSC0021"):
        make_temporary("x")


@pytest.mark.parametrize(
    ("number", "asked"),
    [(signal.SIGTERM, "*"), (signal.SIGHUP, "*"), (signal.SIGINT, "*"), (signal.SIGINT, "*' -c '*")],
    ids=["SIGTERM", "SIGHUP", "SIGINT", "SIGINT-compiling"],
)
def test_a_signal_leaves_nothing(model: Path, tmp_path: Path, number: signal.Signals, asked: str) -> None:
    """While compilers do not end, asked for a version or with a file to compile: each is ended too."""
    (tmp_path / "tmp").mkdir()
    started = tmp_path / "started"
    endless = f"echo $$ >> {started}; exec sleep 60"
    cc = compiler(tmp_path / "cc", f'case "$*" in {asked}) {endless};; *) exec cc "$@";; esac')
    environment = {**os.environ, "CC": str(cc), "TMPDIR": str(tmp_path / "tmp")}
    command = [*MSC, "compile", str(model), "-o", str(tmp_path / "x.exe")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not started.exists() or not started.read_text():
            time.sleep(0.02)
        process.send_signal(number)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert said == ("interrupted\n" if number == signal.SIGINT else f"ended by {number.name}\n")
    assert os.listdir(tmp_path / "tmp") == []
    for process_id in started.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(process_id), 0)


ENDLESS = """func.func @main(%n: tensor<i64> {ms.name = "n"}) -> tensor<i64> {
  %r = scf.while (%a = %n) : (tensor<i64>) -> tensor<i64> {
    %z = ms.constant dense<0> : tensor<i64>
    %c = ms.greater_equal %a, %z
    %b = tensor.extract %c[] : tensor<i1>
    scf.condition(%b) %a : tensor<i64>
  } do {
  ^bb0(%a: tensor<i64>):
    scf.yield %a : tensor<i64>
  }
  func.return %r : tensor<i64>
}
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_without_end_is_cut_off(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "endless.mir").write_text(ENDLESS)
    command = [*MSC, "run", str(tmp_path / "endless.mir"), "--random", "0"]
    subprocess.run([*MSC, "compile", tmp_path / "endless.mir", "-o", tmp_path / "x.so"], check=True)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        start = time.monotonic()
        process.send_signal(number)
        try:
            process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode in ((130,) if number == signal.SIGINT else (-number, 128 + number))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(("error", "code"), [(MemoryError(), "MSC0020"), (OSError(28, "No room"), "MSC0021")])
def test_the_system_is_named(error: Exception, code: str, capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(SystemExit), Reports(debug=False):
        fail()
    assert capfd.readouterr().err.startswith(f"error[{code}]")


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = f'msc() {{ {" ".join(MSC)} "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", script], cwd=folder, text=True, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize(
    "command",
    [
        "msc run small.mir --random 0 > /dev/full",
        "msc compile small.mir --emit c > /dev/full",
        "msc opt small.mir >&-",
        "msc inspect small.mir >&-",
        "msc compile small.mir -o /dev/full --emit loop",
        "ulimit -f 4; msc compile small.mir -o x.exe",
        "ulimit -n 8; msc compile small.mir -o x.exe --no-cache",
        f"msc compile small.mir -o {'x' * 300}.c",
        "msc compile small.mir -o $'\\xff.c' --name x; false",
    ],
)
def test_little_to_be_had(model: Path, command: str) -> None:
    result = run(command, model.parent)
    assert result.returncode == 1
    assert "MSC09" not in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


def test_models_from_streams_are_read_once(model: Path) -> None:
    (model.parent / "other").mkdir()
    for command in (
        "msc compile - -o a.so < small.mir",
        "msc compile <(cat small.mir) --weights . -o b.so",
        "msc compile <(cat small.mir) --from graph --weights . -o b.bundle",
        "cd other; msc compile - --weights .. --emit c < ../small.mir",
        "msc run - --random 0 < small.mir",
        "msc inspect - < small.mir",
        "msc bench - --seconds 0 --kernels < small.mir",
    ):
        result = run(command, model.parent)
        assert result.returncode == 0, (command, result.stderr)


@pytest.mark.parametrize("cached", ["", "--no-cache"])
def test_what_does_not_end_is_not_waited_for(model: Path, cached: str) -> None:
    weights = model.parent / "small.safetensors"
    weights.unlink()
    os.mkfifo(weights)
    assert "error[MSC0301]" in run(f"msc run small.mir --random 0 {cached}", model.parent).stderr
    weights.unlink()
    weights.symlink_to("/dev/zero")
    assert "error[MSC0305]" in run(f"msc run small.mir --random 0 {cached}", model.parent).stderr


def test_a_fifo_without_a_writer_is_no_model(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(model.parent / "f.mir")
    monkeypatch.setattr(streams, "PATIENCE", 0.3)
    with pytest.raises(MscError, match=r"MSC0001.*nothing was written to it for 0\.3 seconds"):
        read_source(model.parent / "f.mir")
    with pytest.raises(MscError, match="MSC0002"):
        read_source(Path("/dev/zero"))
