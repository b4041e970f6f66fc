"""Bugs of msc: a code, a file that repeats the error, and no words of Python's where the cause is known."""

from __future__ import annotations

import errno
import re
import tempfile
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import msc
from msc import MscError
from msc.backends.cpu import CpuBackend
from msc.driver.passes.opt import OptOptions, run_opt
from msc.driver.passes.reproducer import KEPT, with_reproducer
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.support.failures import Door, diagnosed


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def named_file(error: MscError) -> Path:
    found = re.search(r"the reproducer is (\S+): (msc .*) repeats the error", str(error))
    assert found is not None, str(error)
    return Path(found.group(1))


def test_a_pass_that_fails_leaves_a_reproducer(model: Path) -> None:
    def fail(self: ClusterKernels, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("boom")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClusterKernels, "apply", fail)
        with pytest.raises(MscError, match=r"MSC0900.*KeyError: 'boom'") as caught:
            msc.compile(model)
        file = named_file(caught.value)
        first = file.read_text("utf-8").partition("\n")[0]
        assert first.startswith("// msc opt: cluster-kernels,")
        with pytest.raises(MscError, match=r"MSC0900.*KeyError: 'boom'"):
            run_opt(str(file), OptOptions())
    assert "gk.kernel" not in file.read_text("utf-8")
    assert "gk.kernel" in run_opt(str(file), OptOptions())
    assert "gk.kernel" not in run_opt(str(file), OptOptions("dce"))


def test_c_that_cannot_be_generated_leaves_the_module(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("no")

    monkeypatch.setattr(CpuBackend, "generate", fail)
    with pytest.raises(MscError, match=r"MSC0900(.|\n)*msc compile \S+\.loop\.mir --target cpu --emit c") as caught:
        msc.compile(model)
    assert "loop.for" in named_file(caught.value).read_text("utf-8")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MemoryError(), "MSC0020"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), r"MSC0021.*'/tmp/x': No space(.|\n)*TMPDIR"),
        (OSError(errno.EMFILE, "Too many open files"), r"MSC0021(.|\n)*ulimit -n"),
        (ValueError("why"), r"MSC0900.*ValueError: why"),
        (RecursionError(), r"MSC0900.*RecursionError"),
    ],
)
def test_the_door_turns_exceptions_into_codes(error: Exception, text: str) -> None:
    with pytest.raises(MscError, match=text) as caught, Door():
        raise error
    assert caught.value.__cause__ is error


def test_the_door_lets_through_what_ends_programs() -> None:
    with pytest.raises(KeyboardInterrupt), Door():
        raise KeyboardInterrupt


def test_no_room_for_temporary_files(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/msc-x")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(MscError, match=r"MSC0021.*No space left"):
        msc.compile(model)
    assert diagnosed(OSError("odd")).message.endswith("odd")


def test_the_newest_reproducers_stay(tmp_path: Path) -> None:
    others = [tmp_path / "notes.txt", tmp_path / "msc-reproducer-folder"]
    others[0].write_text("mine")
    others[1].mkdir()
    named = [
        named_file(with_reproducer(KeyError(str(k)), lambda: "text", ".mir", "msc opt {}")) for k in range(KEPT + 3)
    ]
    assert [path for path in named if path.exists()] == named[-KEPT:]
    assert all(path.exists() for path in others)


def test_what_cannot_be_written_as_text_does_not_hide_the_bug() -> None:
    def fail() -> str:
        raise TypeError("a pass takes what has no text")

    error = with_reproducer(KeyError("boom"), fail, ".mir", "msc opt {}")
    assert "KeyError: 'boom'" in str(error)
    assert "reproducer" not in str(error)
