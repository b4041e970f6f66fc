"""Objects, files and names of other frameworks: what msc says of them, without the frameworks."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError, Tensor, nn, ops
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.support import other_frameworks
from msc.support.other_frameworks import file_advice, framework_of
from msc.support.torch_names import TORCH_NAMES
from msc.support.wording import a


class Foreign:
    """A tensor as other frameworks have them: it gives its elements when its gradient is off and it is on the CPU."""

    __module__ = "torch"

    def __init__(self, values: Any, *, ready: bool = False) -> None:
        self._values, self._ready = np.asarray(values), ready

    def detach(self) -> Foreign:
        return self

    def cpu(self) -> Foreign:
        return Foreign(self._values, ready=True)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if not self._ready:
            raise RuntimeError("a tensor of a device")
        return self._values


class ForeignNet:
    __module__ = "torch.nn.modules.linear"

    def forward(self, x: Any) -> Any:
        return x

    __call__ = forward


X: Any = Foreign(np.ones((2, 3), np.float32))
NET: Any = ForeignNet()
CLASS: Any = ForeignNet


def test_where_objects_come_from() -> None:
    class Net(ForeignNet):
        __module__ = "users"

    assert framework_of(X) == framework_of(ForeignNet) == framework_of(Net()) == "PyTorch"
    assert framework_of(np.ones(2)) is framework_of(nn.ReLU()) is framework_of(3) is framework_of(None) is None


def test_tensors_become_tensors() -> None:
    made = (Tensor(X), msc.tensor(X), msc.Parameter(X, name="x"))
    assert all(np.array_equal(each.asnumpy(), np.ones((2, 3))) for each in made)
    assert Tensor(X, msc.float16).dtype is msc.float16
    assert not np.shares_memory(Tensor(X).asnumpy(), X.cpu().__array__())


def test_a_compiled_model_takes_them() -> None:
    compiled = msc.compile(nn.ReLU(), Tensor(np.ones((2, 3), np.float32)))
    assert np.array_equal(compiled(X), np.ones((2, 3)))
    assert np.array_equal(msc.compile(nn.ReLU(), X)(X), np.ones((2, 3)))


@pytest.mark.parametrize(
    "use",
    [
        lambda: msc.compile(NET, Tensor([1.0])),
        lambda: msc.compile(CLASS, Tensor([1.0])),
        lambda: msc.export(NET, Tensor([1.0]), file_name="x.mir"),
        lambda: msc.Model(NET),
        lambda: nn.SequentialCell(NET),
        lambda: nn.Adam([X]),
        lambda: ops.relu(X),
        lambda: Tensor([1.0]) + X,
        lambda: msc.load_param_into_net(nn.Dense(3, 2), {"weight": X}),
    ],
)
def test_other_uses_say_what_to_do(use: Any) -> None:
    with pytest.raises(MscError, match=r"help: .*(ONNX|msc\.Tensor|Cell|TNet\(\)|ForeignNet\(\)|trainable)"):
        use()


def test_a_function_of_another_framework() -> None:
    """PyTorch calls this for every function and layer of its own that meets a tensor of msc."""
    with pytest.raises(MscError, match=r"MSC0015.*PyTorch's linear"):
        Tensor.__torch_function__(named("linear"), (Tensor,), (Tensor([1.0]),))


def named(name: str) -> ModuleType:
    return ModuleType(name)


def test_files(tmp_path: Path) -> None:
    endings: Any = other_frameworks._FILES  # pyright: ignore[reportPrivateUsage]
    for ending in endings:
        path = tmp_path / f"cnn{ending}"
        path.write_bytes(b"x")
        with pytest.raises(MscError) as error:
            read_model(str(path), CompileOptions())
        told = file_advice(path.name)
        assert told is not None
        assert (error.value.diagnostics[0].code, error.value.diagnostics[0].help) == ("MSC0006", told[1])


@pytest.mark.parametrize(("name", "beside"), [("cnn.onx", "cnn.onnx"), ("cnn.pth", "cnn.pt"), ("net.mr", "net.mir")])
def test_a_file_beside_is_proposed(tmp_path: Path, name: str, beside: str) -> None:
    (tmp_path / beside).write_bytes(b"")
    with pytest.raises(MscError) as error:
        read_model(str(tmp_path / name), CompileOptions())
    assert beside.endswith(".pt") or error.value.diagnostics[0].help == f"did you mean '{beside}'?"


@pytest.mark.parametrize("start", [b"PK\x03\x04rest of a zip", b"\x80\x02}q\x00."])
def test_files_of_torch_save_are_no_checkpoints(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "net.ckpt").write_bytes(start)
    with pytest.raises(MscError, match=r"MSC0830.*torch\.save"):
        msc.load_checkpoint(tmp_path / "net.ckpt")


def test_there_are_thirty_names_and_more() -> None:
    assert len(TORCH_NAMES) > 30


@pytest.mark.parametrize("name", TORCH_NAMES)
def test_advice_names_what_there_is(name: str) -> None:
    """Every `msc.x.y`, `nn.X` and `ops.f` in the table exists, and so do the methods of a network."""
    net = nn.Dense(2, 2)
    advice = re.sub(r'"[^"]*"', "", TORCH_NAMES[name])
    for path in re.findall(r"(?<![\w.])((?:msc|nn|ops|net)(?:\.[A-Za-z_]\w*)+)", advice):
        first, *rest = path.split(".")
        value: Any = {"msc": msc, "nn": nn, "ops": ops, "net": net}[first]
        for part in rest:
            value = getattr(value, part)


def test_names_of_pytorch_are_explained_where_they_are_asked_for() -> None:
    net = nn.Dense(2, 2)
    places: list[tuple[Any, str]] = [
        *((net, name) for name in "forward parameters eval train cuda zero_grad".split()),
        *((nn.Adam(net.trainable_params()), name) for name in "zero_grad step param_groups".split()),
        *((Tensor([1.0]), name) for name in "backward cuda requires_grad".split()),
        *((nn, name) for name in "Module Sequential ModuleList functional init".split()),
        *((msc, name) for name in "no_grad DataLoader optim cuda".split()),
    ]
    for owner, name in places:
        with pytest.raises(AttributeError) as error:
            getattr(owner, name)
        assert TORCH_NAMES[name] in str(error.value)


@pytest.mark.parametrize(
    ("owner", "name", "place"), [(msc, "zeros", "msc.ops"), (nn, "Parameter", "msc"), (ops, "SequentialCell", "msc.nn")]
)
def test_names_of_other_modules_are_found(owner: Any, name: str, place: str) -> None:
    with pytest.raises(AttributeError, match=rf"it is in {place}: {place}\.{name}"):
        getattr(owner, name)


def test_articles() -> None:
    right = "a Cell, an Optimizer, an int, a str, an ndarray, an LSTM, a uint8, a Tensor, a Unit, an ONNX, a CSV"
    assert [a(words.split()[1]) for words in right.split(", ")] == right.split(", ")
