"""Arguments of the Python API: what is taken, and what is refused with a code and advice."""

from __future__ import annotations

import copy
import gc
import io
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError
from msc.nn import ReLU

TEXT = """builtin.module @small {
  func.func @main(%x: tensor<?x4xf32> {ms.name = "x", ms.dims = ["batch", ""]}) -> (tensor<?x4xf32> {ms.name = "y"}) {
    %0 = ms.abs %x
    func.return %0 : tensor<?x4xf32>
  }
}
"""
X = -np.ones((3, 4), np.float32)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield msc.compile(TEXT, dims={"batch": 3})


NUMBERS: dict[str, list[object]] = {
    "threads": ["2", 1.5, True, -1, b"1"],
    "max_memory": [1.5, -1, 0, "x", True, None],
    "without": [3, None, {"a": 1}, ["nope"], b"fusion", [3]],
    "target": [None, 3, "x", b"cpu"],
    "march": [3, b"native", ["native"]],
    "weights": [3, b"x", ["a"], ""],
    "tuned": [3, b"x", "\0"],
    "winograd": [None, 1, "yes"],
    "flush_subnormals": [None, 0, "no"],
    "use_cache": [None, 1],
    "input_values": [3, "axes=1", ["axes"], {1: 2}, {"axes": None}, {"axes": object()}],
    "dims": [
        *(["b"], "batch", {1: 2}, {"batch": None}, {"batch": 3.0}, {"batch": True}, {"batch": (1, 2, 3)}),
        *({"batch": range(1, 8)}, {"batch": slice(1, 8)}, {"batch": "x"}, {"batch": "1..2..3"}, {"batch": (8, 1)}),
        *({"batch": 0}, {"batch": 1 << 62}, {"batch": (1, 1 << 62)}, {"batch": (1, 2.5)}, {"batch": (True, 2)}),
    ],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values])
def test_what_is_refused(name: str, value: object) -> None:
    arguments: dict[str, Any] = {"dims": {"batch": 3}, name: value}
    with pytest.raises(MscError) as caught:
        msc.compile(TEXT, **arguments)
    assert caught.value.diagnostics[0].code in ("MSC0008", "MSC0506", "MSC0715", "MSC0207"), str(caught.value)


@pytest.mark.parametrize(
    "value", [3, np.int64(3), np.uint8(3), "3", (3, 3), np.array(3), [3, np.int32(3)], "3..3", " 3 .. 3 "]
)
def test_sizes_that_are_taken(network: Any, value: Any) -> None:
    assert msc.compile(TEXT, dims={"batch": value})(X).shape == (3, 4)


def test_what_has_one_meaning_is_taken() -> None:
    options: dict[str, Any] = {"max_memory": "4G", "without": "fusion,assign-layouts", "threads": np.int64(1)}
    options["winograd"] = np.True_
    assert msc.compile(TEXT, dims={"batch": 3}, **options)(X).sum() == 12
    assert msc.compile(TEXT, dims={"batch": 3}, threads=None, march=None)(X).sum() == 12
    with pytest.raises(MscError, match="MSC0507"):
        msc.compile(TEXT, dims={"batch": 3}, max_memory="8")


@pytest.mark.parametrize("value", [None, 3, "", b"", ["a"], object(), b"\x08\x01", "no\n", io.StringIO("")])
def test_what_is_no_model(value: Any) -> None:
    with pytest.raises(MscError):
        msc.compile(value)


def test_what_is_no_cell() -> None:
    kinds: list[Any] = [object, int, ReLU]
    for kind in kinds:
        with pytest.raises(MscError, match=r"MSC0008.*not a class(.|\n)*pass an object of it"):
            msc.compile(kind)


def test_an_example_that_is_given_twice_stands_for_two_arguments() -> None:
    shared = [msc.Tensor(X)]

    def first(a: list[msc.Tensor], b: list[msc.Tensor]) -> msc.Tensor:
        return a[0] - b[0]

    difference = msc.compile(first, shared, shared)
    assert np.array_equal(difference(X + 2, X), np.full_like(X, 2))


def test_models_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.mir"
    path.write_text(TEXT, "utf-8")
    with path.open() as text, path.open("rb") as data:
        for model in (TEXT, TEXT.encode(), text, data, path, str(path)):
            assert msc.compile(model, dims={"batch": 3})(X).sum() == 12
    with pytest.raises(MscError, match=r"<text>:3:10"):
        msc.compile(TEXT.replace("ms.abs", "ms.abz"), dims={"batch": 3})


def test_onnx_in_memory() -> None:
    import onnx

    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> m (float[n,4] x) => (float[n,4] y) { y = Abs(x) }'
    )
    for source in (model, model.SerializeToString(), io.BytesIO(model.SerializeToString())):
        assert msc.compile(source, dims={"n": 3})(X).sum() == 12
    on_call = msc.compile(model)
    gc.collect()
    assert on_call(X).sum() == 12
    assert "n" in repr(on_call)
    assert [str(t) for t in on_call.outputs] == ["y: float32[n, 4]"]
    with pytest.raises(MscError, match=r"MSC0713|MSC0207"):
        on_call.save("x.so")
    with pytest.raises(MscError, match=r"MSC0713|MSC0207"):
        ForkingPickler.dumps(on_call)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"'x' is None, expected float32(.|\n)*pass an array of float32 of shape \[3, 4\]"),
        ("x", r"'x' holds text"),
        (np.array([[1, None, 2, 3]] * 3), r"'x' holds Python objects"),
        (object(), r"'x' holds Python objects"),
        ([[1], [1, 2]], r"its rows have several lengths"),
        (np.ma.masked_array(X, X < 0), r"masked array(.|\n)*array.filled\(value\)"),
        (X.astype(complex), r"dtype complex128(.|\n)*array.real.astype"),
        (X.astype("M8[s]"), r"holds dates"),
        (np.zeros((3, 4), [("a", int)]), r"holds records"),
    ],
)
def test_inputs_that_are_no_arrays_of_numbers(network: Any, value: Any, message: str) -> None:
    with pytest.raises(MscError, match=message):
        network(value)


def test_integers_of_lists_are_taken_only_as_they_are() -> None:
    text = TEXT.replace("f32", "i8").replace("?", "3").replace(', ms.dims = ["batch", ""]', "")
    model: Any = msc.compile(text)
    assert model([[1, 2, 3, -4]] * 3)[0].tolist() == [1, 2, 3, 4]
    with pytest.raises(MscError, match="MSC0604"):
        model([[300, 2, 3, 4]] * 3)


def test_memory_for_results(network: Any) -> None:
    y = np.empty((3, 4), np.float32)
    network.call_into([X], [y])
    assert y.sum() == 12
    fixed = y.copy()
    fixed.flags.writeable = False
    for wrong in (
        [],
        [y, y],
        None,
        [None],
        [y[:2]],
        [y.T],
        [np.empty((4, 3), np.float32).T],
        [y.astype(float)],
        [fixed],
    ):
        with pytest.raises(MscError, match="MSC0613"):
            network.call_into([X], wrong)
    with pytest.raises(MscError, match=r"MSC0613.*shared"):
        network.call_into([y], [y])
    with pytest.raises(MscError, match="MSC0609"):
        network.profile([X], np.zeros(1))


def test_what_a_model_says_of_itself(network: Any) -> None:
    assert repr(network) == ("<msc.CompiledModel small(x: float32[3, 4]) -> (y: float32[3, 4]), for native, 1 thread>")
    (x,) = network.inputs
    assert (x.name, x.dtype, x.shape) == ("x", np.float32, (3, 4))
    ranged = msc.compile(TEXT, dims={"batch": (1, 8)})
    assert [str(t) for t in (*ranged.inputs, *ranged.outputs)] == [
        "x: float32[batch=1..8, 4]",
        "y: float32[batch=1..8, 4]",
    ]
    assert copy.deepcopy(network) is network


def test_values_of_inputs_are_for_onnx_models() -> None:
    for model in (TEXT, abs):
        with pytest.raises(MscError, match="MSC0014"):
            msc.compile(model, input_values={"x": [1]})


def test_saving(network: Any, tmp_path: Path) -> None:
    for wrong in (None, 3, "", b"a.so"):
        with pytest.raises(MscError, match="MSC0008"):
            network.save(wrong)
    with pytest.raises(MscError, match="MSC0004"):
        network.save(tmp_path / "none" / "a.so")


def test_saving_replaces_nothing_of_the_user(network: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes.so"
    notes.write_text("mine")
    with pytest.raises(MscError, match="MSC0011"):
        network.save(notes)
    assert notes.read_text() == "mine"
    network.save(notes, force=True)
    network.save(notes)
    assert msc.load(notes).signature.name == "small"
    for other in ("model.mir", "model.c", "model.onnx", "model.safetensors"):
        (tmp_path / other).write_text("")
        with pytest.raises(MscError, match="MSC0007"):
            network.save(tmp_path / other, force=True)


def test_an_open_model_s_scalar_is_a_scalar() -> None:
    text = TEXT.replace("-> (tensor<?x4xf32>", "-> (tensor<f32>").replace(
        "ms.abs %x", "ms.reduce_sum %x {axis = [0, 1]}"
    )
    text = text.replace("func.return %0 : tensor<?x4xf32>", "func.return %0 : tensor<f32>")
    assert msc.compile(text, dims={"batch": (1, 8)})(X).shape == ()


def test_the_package_lists_what_is_public() -> None:
    names = [name for name in dir(msc) if not name.startswith("__")]
    assert len(names) == len(set(names))
    assert not {"TYPE_CHECKING", "import_module", "annotations"} & set(names)
    assert {"compile", "load", "MscError"} <= set(names)
