"""`msc.compile`, `msc.export` and `module.py:Net`: a compiled Cell gives what the Cell gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn
from msc.dialects.arrays import Array
from msc.support.diagnostics import MscError
from msc.weights.safetensors_writing import write_safetensors
from tests.unit.cells import networks
from tests.unit.cells.networks import Counter, Nested, Outside, Perceptron, doubled

FILE = networks.__file__


def array(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_cell_is_compiled_for_the_types_of_examples() -> None:
    net, x = Perceptron(), array(2, 4)
    compiled = msc.compile(net, Tensor(x))
    np.testing.assert_allclose(compiled(x), net(Tensor(x)).asnumpy(), rtol=1e-5, atol=1e-6)
    assert [i.name for i in compiled.inputs] == ["x"]
    assert compiled.signature.name == "Perceptron"


def test_functions_are_models_too() -> None:
    np.testing.assert_array_equal(msc.compile(doubled, array(3))(array(3)), 2 * array(3))


def test_results_are_nested_as_the_cell_returns_them(tmp_path: Path) -> None:
    x, a, b = (array(3, seed=k) for k in range(3))
    compiled = msc.compile(Nested(), Tensor(x), (Tensor(a), Tensor(b)))
    compiled.save(tmp_path / "nested.so")
    for model in (compiled, msc.load(tmp_path / "nested.so")):
        assert [i.name for i in model.inputs] == ["x", "pair.0", "pair.1"]
        found: Any = model(x, a, b)
        np.testing.assert_array_equal(found["sum"], x + a)
        same, (difference, word, number) = found["rest"]
        np.testing.assert_array_equal(same, x)
        np.testing.assert_array_equal(difference, a - b)
        assert (word, number) == ("difference", 2)


def test_assigned_parameters_are_states() -> None:
    compiled, total = msc.compile(Counter(), array(3)), np.zeros(3, np.float32)
    for k in range(3):
        np.testing.assert_allclose(compiled(array(3), total), k * array(3), rtol=1e-6)
    np.testing.assert_allclose(total, 3 * array(3), rtol=1e-6)


def test_open_sizes_are_compiled_at_the_call() -> None:
    net = Perceptron()
    compiled: Any = msc.compile(net, Tensor(shape=(None, 4), dtype=msc.float32), dims={"x.0": (1, 8)})
    for n in (1, 5):
        x = array(n, 4)
        np.testing.assert_allclose(compiled(x), net(Tensor(x)).asnumpy(), rtol=1e-5, atol=1e-6)
    for wrong, code in (
        (array(9, 4), "MSC0603"),
        (array(2, 3), "MSC0603"),
        (array(2, 4).astype(np.float64), "MSC0604"),
    ):
        with pytest.raises(MscError, match=code):
            compiled(wrong)
    with pytest.raises(MscError, match="MSC0207"):
        msc.compile(net, Tensor(shape=(None, 4), dtype=msc.float32), dims={"y.0": 3})


def test_a_cell_of_open_sizes_is_called_as_other_models(tmp_path: Path) -> None:
    example = Tensor(shape=(None, 2), dtype=msc.float32)
    compiled: Any = msc.compile(nn.ReLU(), example)
    assert compiled(x=[[-1, 2]]).tolist() == [[0, 2]]
    (found,) = compiled.inputs
    assert (found.name, found.dtype, found.shape[0].name, found.shape[1]) == ("x", np.float32, "x.0", 2)
    for wrong in (lambda: compiled(), lambda: compiled(y=array(1, 2)), lambda: compiled(array(1, 2), array(1, 2))):
        with pytest.raises(MscError, match="MSC060"):
            wrong()
    with pytest.raises(MscError, match=r"MSC0207.*'x.0'(.|\n)*an example with all sizes"):
        compiled.save(tmp_path / "x.so")
    with pytest.raises(MscError, match=r"MSC0207.*'x.0'(.|\n)*an example with all sizes"):
        msc.export(nn.ReLU(), example, file_name=str(tmp_path / "x.mir"))


def test_what_a_model_cannot_do_is_refused() -> None:
    with pytest.raises(MscError, match=r"MSC0850(.|\n)*'last'"):
        msc.compile(Outside(), array(3))


def test_export_writes_models(tmp_path: Path) -> None:
    net, x = Perceptron(), array(2, 4)
    expected = net(Tensor(x)).asnumpy()
    for file_format in ("MIR", "ONNX", "SO"):
        name = msc.export(net, Tensor(x), file_name=str(tmp_path / f"p_{file_format}"), file_format=file_format)
        model = msc.load(name) if name.endswith(".so") else msc.compile(name)
        np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    for file_format in ("AIR", "MINDIR"):
        with pytest.raises(MscError, match="MSC0007"):
            msc.export(net, Tensor(x), file_name=str(tmp_path / "p"), file_format=file_format)


@pytest.mark.parametrize(
    ("file_format", "theirs"), [("MIR", ".mir"), ("MIR", ".safetensors"), ("ONNX", ".onnx"), ("SO", ".so")]
)
def test_export_replaces_nothing_of_the_user(tmp_path: Path, file_format: str, theirs: str) -> None:
    net, x, file = Perceptron(), Tensor(array(2, 4)), tmp_path / f"p{theirs}"
    file.write_text("mine")
    with pytest.raises(MscError, match="MSC0011"):
        msc.export(net, x, file_name=str(tmp_path / "p"), file_format=file_format)
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]
    for force in (True, False):
        msc.export(net, x, file_name=str(tmp_path / "p"), file_format=file_format, force=force)
    assert file.read_bytes() != b"mine"


def test_a_cell_that_was_not_initialised_is_named() -> None:
    class Bare(nn.Cell):
        def __init__(self) -> None:
            self.scale = 2

        def construct(self, x: Tensor) -> Tensor:
            return x * self.scale

    for call in (msc.compile, msc.jit(Bare())):
        with pytest.raises(MscError, match="MSC0823"):
            call(*((Bare(),) if call is msc.compile else ()), Tensor(array(2, 4)))  # pyright: ignore[reportCallIssue]


def test_text_of_a_cell() -> None:
    text = Perceptron().to_mir(Tensor(array(2, 4)))
    assert "ms.parameter @first.weight : tensor<5x4xf32>" in text


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "msc.driver", *arguments], capture_output=True, text=True, check=False)


def test_verbs_take_a_cell_of_a_file(tmp_path: Path) -> None:
    weights = {name: array(*p.shape, seed=7) for name, p in Perceptron(6).parameters_dict().items()}
    write_safetensors(weights, tmp_path / "w.safetensors")
    x, out = array(2, 4), tmp_path / "net.so"
    made = ("--init", str(tmp_path / "w.safetensors"), "--input", "x=2x4xf32")
    assert run("compile", f"{FILE}:Perceptron(6, classes=3)", *made, "-o", str(out)).returncode == 0
    hidden = np.maximum(x @ weights["first.weight"].T + weights["first.bias"], 0)
    expected = hidden @ weights["last.weight"].T + weights["last.bias"]
    np.testing.assert_allclose(msc.load(out)(x), expected, rtol=1e-5, atol=1e-6)
    verified = run("verify", f"{FILE}:Perceptron", "--input", "x=2x4xf32")
    assert "all steps agree" in verified.stdout
    shown = run("opt", f"{FILE}:Perceptron", "--input", "x=2x4xf32", "-p", "canonicalize-ms").stdout
    assert "ms.relu" in shown
    assert "k0" in run("explain", f"{FILE}:Perceptron", "--input", "x=2x4xf32").stdout
    assert "output: 2" in run("inspect", f"{FILE}:Perceptron", "--input", "x=2x4xf32").stdout


BROKEN = {
    "MSC0001": ("absent.py:Net", None),
    "MSC0851": ("net.py:Nett", "class Net(nn.Cell):\n    def construct(self, x):\n        return x\n"),
    "MSC0852": (
        "net.py:Net",
        "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        1 / 0\n",
    ),
    "MSC0853": ("net.py:Net", "class Net(nn.Cell):\n    def construct(self, x, y):\n        return x + y\n"),
    "MSC0854": ("net.py:Net", "class Net(nn.Cell):\n    def construct(self, x):\n        return x + {}['a']\n"),
    "MSC0201": (
        "net.py:Net",
        "class Net(nn.Cell):\n    def construct(self, x):\n        return x + ops.reshape(x, (1, 8))\n",
    ),
}
"""A MODEL and the text of its file, by the code of the error."""


def test_a_file_with_several_cells_and_no_name(tmp_path: Path) -> None:
    cell = "class {}(nn.Cell):\n    def construct(self, x):\n        return x\n"
    (tmp_path / "net.py").write_text(f"from msc import nn\n{cell.format('A')}{cell.format('B')}", "utf-8")
    done = run("compile", str(tmp_path / "net.py"), "--input", "x=2x4xf32", "-o", str(tmp_path / "net.so"))
    assert "error[MSC0851]" in done.stderr
    assert "without the name of a Cell; its Cells: A, B" in done.stderr
    assert f"help: write {tmp_path / 'net.py'}:A" in done.stderr


@pytest.mark.parametrize("code", BROKEN)
def test_mistakes_in_a_file_are_told_at_the_users_line(code: str, tmp_path: Path) -> None:
    model, text = BROKEN[code]
    if text is not None:
        (tmp_path / "net.py").write_text(f"from msc import nn, ops\n{text}", "utf-8")
    done = run("compile", str(tmp_path / model), "--input", "x=2x4xf32", "-o", str(tmp_path / "net.so"))
    assert done.returncode == 1
    assert f"error[{code}]" in done.stderr
    assert "Traceback" not in done.stderr
    assert "click" not in done.stderr
    if code == "MSC0852":
        assert "net.py:5:1" in done.stderr
    if code == "MSC0854":
        assert "KeyError" in done.stderr
        assert "net.py:4" in done.stderr
    if code == "MSC0201":
        assert "net.py:4:16" in done.stderr


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("net.py:Net", "class Net(nn.Cell)\n    pass\n"),
        ("net.py:Net", "raise SystemExit(3)\n"),
        ("net.py:Net(1, 2, 3)", "class Net(nn.Cell):\n    pass\n"),
        ("net.py:Net(open('x'))", "class Net(nn.Cell):\n    pass\n"),
        ("net.py:Net(", "class Net(nn.Cell):\n    pass\n"),
        ("net.py:Net(1)(2)", "class Net(nn.Cell):\n    def __init__(self, n):\n        super().__init__()\n"),
        ("net.py:f(2)", "def f(x):\n    return x\n"),
    ],
)
def test_files_that_cannot_be_run_are_told(model: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(f"from msc import nn, ops\n{text}", "utf-8")
    done = run("compile", str(tmp_path / model), "--input", "x=2x4xf32", "-o", str(tmp_path / "net.so"))
    code = "MSC0833" if "Net(1, 2, 3)" in model else "MSC0852"  # what the constructor is given is told by the library
    assert (done.returncode, f"error[{code}]" in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_what_is_printed_is_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    class Chatty(nn.Cell):
        def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = x * 2
            print("twice", y + 1)
            return y, x

    compiled = msc.compile(Chatty(), array(3))
    twice, same = compiled(array(3))
    np.testing.assert_allclose(twice, 2 * array(3))
    np.testing.assert_allclose(same, array(3))
    assert len(compiled.outputs) == 2
    assert not capsys.readouterr().out


def test_one_example_may_stand_for_several_arguments() -> None:
    """Only the types of examples count."""

    def joined(x: Tensor, y: Tensor) -> Tensor:
        return x - y

    def inside(d: dict[str, Tensor], e: dict[str, Tensor]) -> Tensor:
        return d["a"] - e["a"]

    a, b = array(3), 2 * array(3)
    for example in (Tensor(a), a):
        np.testing.assert_allclose(msc.compile(joined, example, example)(a, b), a - b)
    one = {"a": Tensor(a)}
    np.testing.assert_allclose(msc.compile(inside, one, one)(a, b), a - b)
    np.testing.assert_allclose(msc.compile(lambda p: p[0] - p[1], [one["a"]] * 2)(a, b), a - b)  # pyright: ignore
