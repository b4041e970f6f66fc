"""`msc import` and ONNX files as MODEL on the command line."""

import subprocess
import sys
from pathlib import Path

from tests.unit.importers.models import classifier


def msc(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msc.driver", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_import_then_run_agrees_with_running_the_model(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(classifier().SerializeToString())
    bound = ("--dim", "batch=2", "--input-value", "axes=1")
    done = msc("import", "net.onnx", *bound, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"net.onnx", "net.mir", "net.safetensors"}
    from_text = msc("run", "net.mir", "--random", "1", folder=tmp_path)
    from_onnx = msc("run", "net.onnx", "--random", "1", *bound, folder=tmp_path)
    assert from_text.returncode == 0, from_text.stderr
    assert from_text.stdout == from_onnx.stdout


def test_mistakes_are_diagnostics_and_write_nothing(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(classifier().SerializeToString())
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07 not a model")
    for arguments, code in (
        (("net.onnx", "--dim", "batch=2"), "MSC0712"),
        (("net.onnx", "--input-value", "axes=1"), "MSC0713"),
        (("net.onnx", "--input-value", "axes=one"), "MSC0718"),
        (("net.onnx", "--input-value", "axes=1,2"), "MSC0718"),
        (("net.onnx", "--input-value", "axis=1"), "MSC0715"),
        (("bad.onnx",), "MSC0702"),
        (("none.onnx",), "MSC0701"),
    ):
        done = msc("import", *arguments, folder=tmp_path)
        assert done.returncode == 1
        assert f"error[{code}]" in done.stderr
        assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.mir"))
