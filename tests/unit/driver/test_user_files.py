"""Files of the user's: nothing is replaced in silence, all files of one output appear or none."""

import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output, choose_output
from msc.driver.options import CompileOptions, Reporting
from msc.support import streams
from msc.support.diagnostics import MscError

OPTIONS = CompileOptions(march="generic")


def put(model: Path, out: Path, form: str | None = None, *, force: bool = False, name: str | None = None) -> None:
    output = choose_output(form, str(out))
    emit(str(model), output, CompileOptions(march="generic", name=name), Reporting(), force=force)


def msc(*arguments: object, cwd: Path, **settings: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "msc.driver", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False, **settings)  # pyright: ignore


def test_a_fifo_that_nobody_reads_is_not_waited_for(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.1)
    os.mkfifo(tmp_path / "out")
    with pytest.raises(MscError, match=r"MSC0004.*nobody read from it for 0.1 seconds"):
        put(model, tmp_path / "out", "gk")


def refused(model: Path, out: Path, form: str | None = None) -> str:
    """The code with which a file is left as it was."""
    before = out.read_bytes()
    with pytest.raises(MscError) as error:
        put(model, out, form)
    assert out.read_bytes() == before
    return error.value.diagnostics[0].code


def test_links_are_followed(model: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "x.gk.mir").symlink_to("real/y.gk.mir")
    for _ in range(2):
        put(model, tmp_path / "x.gk.mir")
        assert (tmp_path / "x.gk.mir").is_symlink()
        assert (tmp_path / "real/y.gk.mir").is_file()
    assert sorted(os.listdir(tmp_path / "real")) == ["y.gk.mir"]


@pytest.mark.parametrize("form", ["gk", "c", "so"])
def test_a_fifo_is_written_into(model: Path, tmp_path: Path, form: str) -> None:
    os.mkfifo(tmp_path / "out")
    with subprocess.Popen(["cat", tmp_path / "out"], stdout=subprocess.PIPE) as reader:
        put(model, tmp_path / "out", form)
        text, _ = reader.communicate()
    assert text.startswith({"gk": b"// Written", "c": b"/* Written", "so": b"\x7fELF"}[form])
    assert stat.S_ISFIFO((tmp_path / "out").stat().st_mode)
    assert not (tmp_path / "small.h").exists()


def test_a_device_stays_a_device(model: Path, tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    put(model, tmp_path / "null", "c")
    put(model, Path("/dev/null"), "loop")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_the_standard_output_by_name(model: Path, tmp_path: Path, name: str) -> None:
    """It is added to, as a shell's redirection would be, and not renamed over."""
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    script = f"echo first; {sys.executable} -m msc.driver opt {model} -o {name}; echo last"
    subprocess.run(["bash", "-c", f"{{ {script}; }} > all"], cwd=tmp_path, check=True)
    lines = (tmp_path / "all").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("first", "last")
    assert len(lines) > 5
    assert (tmp_path / "link").is_symlink()


def test_inputs_are_not_written_over(model: Path, tmp_path: Path) -> None:
    weights = tmp_path / "small.safetensors"
    os.link(weights, tmp_path / "hard.loop.mir")
    assert refused(model, model) == "MSC0010"
    assert refused(model, tmp_path / "hard.loop.mir") in ("MSC0010", "MSC0011")
    assert refused(model, weights, "so") == "MSC0010"
    with pytest.raises(MscError, match="MSC0010"):
        emit(str(model), Output("gk", tmp_path / "x.gk.mir"), OPTIONS, Reporting(dump=tmp_path))
    assert not (tmp_path / "x.gk.mir").exists()


def test_the_command_line_protects_inputs(model: Path, tmp_path: Path) -> None:
    text = model.read_bytes()
    for command in (("opt", model, "-o", model), ("compile", model, "-o", model), ("tune", model, "-o", model)):
        result = msc(*command, cwd=tmp_path)
        assert (result.returncode, result.stderr[:14]) == (1, b"error[MSC0010]")
    assert model.read_bytes() == text
    assert msc("opt", model, "-o", model, "--force", cwd=tmp_path).returncode == 0
    assert model.read_bytes() != text


@pytest.mark.parametrize("name", ["x.c", "x.h", "x.o", "x.a", "x.so", "x.exe", "x.gk.mir"])
def test_what_msc_wrote_is_replaced_and_nothing_else(model: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name.replace("x.h", "x.c")
    theirs = tmp_path / ("small.h" if name == "x.h" else name)
    for _ in range(2):
        put(model, out)
    theirs.write_text("int my_own_work;\n")
    assert refused(model, theirs if out.name == theirs.name else out) == "MSC0011" if name != "x.h" else True
    if name == "x.h":
        with pytest.raises(MscError, match="MSC0011"):
            put(model, out)
        assert theirs.read_text() == "int my_own_work;\n"
    put(model, out, force=True)
    put(model, out)
    assert theirs.read_bytes() != b"int my_own_work;\n"


def test_a_text_that_was_edited_is_not_replaced(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.gk.mir"
    put(model, out)
    out.write_text(out.read_text().replace("gk.kernel", "gk.kernel ", 1))
    assert refused(model, out) == "MSC0011"


def test_an_empty_file_is_replaced(model: Path, tmp_path: Path) -> None:
    (tmp_path / "x.c").touch()
    put(model, tmp_path / "x.c")


def test_a_bundle_leaves_the_files_of_others(model: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "b.bundle"
    put(model, bundle)
    (bundle / "src").mkdir()
    (bundle / "src/app.c").write_text("int app;\n")
    (bundle / "NOTES.md").write_text("notes\n")
    put(model, bundle, name="other")
    assert (bundle / "src/app.c").is_file()
    assert (bundle / "NOTES.md").is_file()
    assert (bundle / "other.c").is_file()
    assert not (bundle / "small.c").exists()
    (bundle / "main.c").write_text("int mine;\n")
    with pytest.raises(MscError, match=r"MSC0011.*main\.c"):
        put(model, bundle)
    assert (bundle / "main.c").read_text() == "int mine;\n"
    assert (bundle / "other.c").is_file()
    subprocess.run(["make", "-s", "selftest"], cwd=bundle, check=True)
    assert subprocess.check_output([bundle / "selftest"], cwd="/", text=True) == "PASS: other\n"


def nameless(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    type_ = "tensor<4xf32>"
    path.write_text(f"func.func @main(%x: {type_}) -> {type_} {{\n  %0 = {text} %x\n  func.return %0 : {type_}\n}}\n")
    return path


def test_models_without_a_name_have_that_of_their_file(tmp_path: Path) -> None:
    for name, text in (("att.mir", "ms.exp"), ("sc.mir", "ms.neg")):
        put(nameless(tmp_path, name, text), tmp_path / name.replace("mir", "c"))
    assert sorted(path.name for path in tmp_path.glob("*.h")) == ["att.h", "sc.h"]
    subprocess.run(["cc", "-O0", "-c", "att.c", "sc.c"], cwd=tmp_path, check=True)


def test_a_header_that_went_with_another_output_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, text in (("a", "ms.exp"), ("b", "ms.softmax")):
        (tmp_path / folder).mkdir()
        put(nameless(tmp_path / folder, "model.mir", text), tmp_path / f"{folder}.c", name="net")
    assert "net.h' went with another output" in capsys.readouterr().err


def limited(arguments: Sequence[object], cwd: Path, limit: int) -> subprocess.CompletedProcess[bytes]:
    """With files of at most so many bytes, which is how a full disk looks."""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return msc(*arguments, cwd=cwd, preexec_fn=few)


@pytest.mark.parametrize("out", ["x.c", "x.bundle", "x.a", "x.exe"])
def test_all_files_or_none(model: Path, tmp_path: Path, out: str) -> None:
    before = set(os.listdir(tmp_path))
    for limit in (64, 500, 1500):
        result = limited(("compile", model, "-o", out, "--march", "generic"), tmp_path, limit)
        assert result.returncode == 1
        assert result.stderr.startswith((b"error[MSC0004]", b"error[MSC0021]", b"error[MSC0503]")), result.stderr
        assert set(os.listdir(tmp_path)) == before


def test_stages_are_dumped_together_or_not(model: Path, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    command = ("compile", model, "-o", "x.gk.mir", "--dump-stages", "s")
    result = limited(command, tmp_path, 1000)
    assert (result.returncode, os.listdir(tmp_path / "s")) == (1, [])
    assert msc(*command, cwd=tmp_path).returncode == 0
    assert sorted(os.listdir(tmp_path / "s")) == ["small.gk.mir", "small.mir", "small.opt.mir"]


@pytest.mark.skipif(not shutil.which("mount") or os.geteuid() != 0, reason="a full disk is mounted by root")
def test_a_full_disk(model: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        for out in ("x.c", "x.bundle", "x.so"):
            result = msc("compile", model, "-o", disk / out, cwd=tmp_path)
            assert (result.returncode, result.stderr[:14]) == (1, b"error[MSC0004]"), result.stderr
            assert os.listdir(disk) == []
    finally:
        subprocess.run(["umount", disk], check=False)


def test_outputs_of_a_run_are_replaced_by_their_manifest(model: Path, tmp_path: Path) -> None:
    command = ("run", model, "--random", 0, "--output-dir", "out")
    (tmp_path / "out").mkdir()
    for _ in range(2):
        assert msc(*command, cwd=tmp_path).returncode == 0
    (tmp_path / "out/y.npy").write_bytes(b"mine")
    result = msc(*command, cwd=tmp_path)
    assert (result.returncode, result.stderr[:14]) == (1, b"error[MSC0011]")
    assert (tmp_path / "out/y.npy").read_bytes() == b"mine"


def test_a_folder_with_the_name_of_a_file_stays(model: Path, tmp_path: Path) -> None:
    for name in ("x.so", "x.c", "x.gk.mir"):
        (tmp_path / name).mkdir()
        with pytest.raises(MscError, match=r"MSC0004.*it is a folder"):
            put(model, tmp_path / name)
        assert not os.listdir(tmp_path / name)
    (tmp_path / "plain").mkdir()
    assert choose_output(None, str(tmp_path / "plain")).form == "bundle"
    with pytest.raises(MscError, match=r"MSC0004.*it is a folder"):
        put(model, tmp_path / "plain", "c")


@pytest.mark.parametrize("arguments", [["explain"], ["inspect"], ["--help"]])
def test_an_output_that_is_full_is_named(model: Path, tmp_path: Path, arguments: list[str]) -> None:
    words = [*arguments, *([model] if arguments == ["inspect"] else [])]
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "msc.driver", *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == ["error[MSC0004]: cannot write the standard output: " + os.strerror(28)]
