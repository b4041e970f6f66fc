"""Bad models: each mistake has its code, names the node or tensor, and nothing else happens."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_function, make_opsetid

import msc
from msc.dialects.arrays import Array
from msc.driver.options import CompileOptions
from msc.formats import format as formats
from msc.formats.registry import FORMATS
from msc.importers.onnx import import_model, import_proto
from msc.support.diagnostics import MscError
from tests.unit.importers.models import classifier, model, node, tensor


def failing(made: ModelProto, **binding: Any) -> str:
    with pytest.raises(MscError) as caught:
        import_proto(made, **binding)
    return str(caught.value)


def failing_file(path: Path, **binding: Any) -> str:
    with pytest.raises(MscError) as caught:
        import_model(path, **binding)
    return str(caught.value)


def one(
    proto: NodeProto, *inputs: ValueInfoProto, constants: dict[str, Array] | None = None, opset: int = 17
) -> ModelProto:
    return model([proto], inputs, [tensor(proto.output[0], None)], constants, opset=opset)


def test_all_unsupported_operators_are_listed_with_counts_and_near_matches() -> None:
    nodes = [node("Reluu", ["x"], ["a"]), node("Reluu", ["a"], ["b"]), node("Frob", ["b"], ["y"], domain="com.other")]
    text = failing(model(nodes, [tensor("x", [2])], [tensor("y", [2])], domains=["com.other"]))
    assert "error[MSC0710]: msc does not import 2 of the model's operators (3 nodes)" in text
    assert "Reluu, used 2 times; did you mean 'Relu'?" in text
    assert "com.other.Frob, used once" in text


def test_operators_that_are_left_out_on_purpose_say_why() -> None:
    text = failing(one(node("ImageDecoder", ["x"], ["y"]), tensor("x", [9], TensorProto.UINT8), opset=20))
    assert "ImageDecoder, used once: it reads image files" in text
    text = failing(one(node("Bernoulli", ["x"], ["y"]), tensor("x", [2])))
    assert "ONNX does not say which random numbers it gives" in text


def test_an_error_of_shapes_names_the_node() -> None:
    text = failing(one(node("MatMul", ["x", "w"], ["y"], name="fc"), tensor("x", [2, 3]), tensor("w", [4, 5])))
    assert "MSC0201" in text
    assert "MatMul 'fc'" in text
    assert "inner sizes 3 and 4" in text


@pytest.mark.parametrize("size", [0, 1, 7, 50, 200])
def test_truncated_files(tmp_path: Path, size: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(classifier().SerializeToString()[:size])
    assert "MSC0702" in failing_file(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "MSC0701" in failing_file(tmp_path / "none.onnx")
    assert "MSC0701" in failing_file(tmp_path)


def test_old_and_future_opsets() -> None:
    text = failing(one(node("Relu", ["x"], ["y"]), tensor("x", [2]), opset=999))
    assert "MSC0703" in text
    assert "opset 999" in text


def test_strings_are_refused() -> None:
    text = failing(one(node("Identity", ["x"], ["y"]), tensor("x", [2], TensorProto.STRING)))
    assert "MSC0704" in text
    assert "'x' has element type string" in text


def test_cycles_and_missing_values() -> None:
    cycle = [node("Neg", ["b"], ["a"]), node("Neg", ["a"], ["b"])]
    assert "cycle" in failing(model(cycle, [tensor("x", [2])], [tensor("b", [2])]))
    text = failing(one(node("Neg", ["inputt"], ["y"]), tensor("input", [2])))
    assert "MSC0705" in text
    assert "did you mean 'input'?" in text


def test_absurd_and_negative_shapes() -> None:
    assert "MSC0708" in failing(one(node("Neg", ["x"], ["y"]), tensor("x", [1 << 20, 1 << 21])))
    made = one(node("ConstantOfShape", ["s"], ["y"]), constants={"s": np.array([1 << 40, 2])})
    assert "MSC0708" in failing(made)
    made = one(node("Neg", ["w"], ["y"]), constants={"w": np.zeros(3, np.float32)})
    made.graph.initializer[0].dims[0] = -3
    assert "MSC0708" in failing(made)


@pytest.mark.parametrize("dims", [[4], [1 << 39], [3, 2]])
def test_data_that_does_not_fill_its_type(dims: list[int]) -> None:
    made = one(node("Neg", ["w"], ["y"]), constants={"w": np.zeros(3, np.float32)})
    del made.graph.initializer[0].dims[:]
    made.graph.initializer[0].dims.extend(dims)
    assert "MSC0709" in failing(made)


def test_wrong_kinds_of_attributes_and_inputs() -> None:
    text = failing(one(node("Elu", ["x"], ["y"], alpha="much"), tensor("x", [2])))
    assert "MSC0711" in text
    assert "attribute 'alpha' is of kind STRING, not FLOAT" in text
    assert "input 1 is missing" in failing(one(node("Add", ["x"], ["y"]), tensor("x", [2])))


def test_values_and_sizes_that_are_not_known() -> None:
    text = failing(classifier(), dims={"batch": 2})
    assert "MSC0712" in text
    assert "--input-value axes=..." in text
    text = failing(classifier(), input_values={"axes": np.array([1])})
    assert "MSC0713" in text
    assert "--dim batch=8, or ranges of them, as in --dim batch=1..8" in text
    assert "did you mean 'batch'?" in failing(classifier(), dims={"bacth": 2})


def test_functions_that_call_themselves_end() -> None:
    function = make_function(
        "own", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="own")], [make_opsetid("own", 1)]
    )
    made = model(
        [node("F", ["x"], ["y"], domain="own")],
        [tensor("x", [2])],
        [tensor("y", [2])],
        functions=[function],
        domains=["own"],
    )
    assert "MSC0714" in failing(made)


def external(folder: Path, location: str, **entries: str) -> Path:
    made = one(node("Add", ["x", "w"], ["y"]), tensor("x", [300]), constants={"w": np.zeros(300, np.float32)})
    (weight,) = made.graph.initializer
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=value)
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return folder / "m.onnx"


OUTSIDE = ["../secret.bin", "junk/../../secret.bin", "/etc/passwd", "C:\\secret.bin", "a\0b", "", ".", "/proc/self/mem"]


@pytest.mark.parametrize("location", OUTSIDE)
def test_external_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(1200))
    assert "MSC0706" in failing_file(external(tmp_path / "model", location))


@pytest.mark.parametrize("kind", ["symlink", "parent", "hardlink", "fifo", "folder", "missing"])
def test_external_data_through_links_and_special_files(tmp_path: Path, kind: str) -> None:
    path = external(tmp_path / "model", "sub/w.bin" if kind == "parent" else "w.bin")
    target, place = tmp_path / "w.bin", tmp_path / "model" / "w.bin"
    target.write_bytes(bytes(1200))
    match kind:
        case "symlink":
            place.symlink_to(target)
        case "parent":
            (tmp_path / "model" / "sub").symlink_to(tmp_path)
        case "hardlink":
            os.link(target, place)
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            pass
    assert "MSC0706" in failing_file(path)


WRONG = [
    ("offset", "1"),
    ("offset", "9" * 9),
    ("length", "8"),
    ("offset", "-4"),
    ("length", "x"),
    ("offset", "9" * 99),
]


@pytest.mark.parametrize("entries", [{key: value} for key, value in WRONG])
def test_external_data_of_wrong_extents(tmp_path: Path, entries: dict[str, str]) -> None:
    path = external(tmp_path / "model", "w.bin", **entries)
    (path.parent / "w.bin").write_bytes(bytes(1200))
    assert "MSC0707" in failing_file(path)


def test_external_data_that_fits(tmp_path: Path) -> None:
    path = external(tmp_path / "model", "w.bin", offset="16", length="1200")
    (path.parent / "w.bin").write_bytes(bytes(16) + np.arange(300, dtype=np.float32).tobytes())
    np.testing.assert_array_equal(import_model(path).weights["w"], np.arange(300, dtype=np.float32))


def test_mutated_models_fail_well() -> None:
    """Flipped bytes give a module or a diagnostic, never another exception."""
    data = bytearray(classifier().SerializeToString())
    rng = np.random.default_rng(0)
    for _ in range(300):
        mutated = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            mutated[place] = rng.integers(256)
        made = onnx.ModelProto()
        try:
            made.ParseFromString(bytes(mutated))
        except DecodeError:
            continue
        with suppress(MscError):
            import_proto(made, input_values={"axes": np.array([1])}, shapes={"x": (1, 3, 6, 6)})


KERNEL = {"w": np.ones((4, 3, 3, 3), np.float32)}
IMAGE = tensor("x", [1, 3, 8, 8])


def test_attributes_are_those_of_the_operator_in_its_opset() -> None:
    """Otherwise a model would silently be another one: `padz` is no padding."""
    text = failing(one(node("Conv", ["x", "w"], ["y"], padz=[1] * 4), IMAGE, constants=KERNEL))
    assert "the operator has no attribute 'padz' in opset 17" in text
    assert "did you mean 'pads'?" in text
    assert "not INTS" in failing(one(node("Conv", ["x", "w"], ["y"], pads=1.5), IMAGE, constants=KERNEL))
    assert "it has: none" in failing(one(node("Relu", ["x"], ["y"], alpha=1.0), IMAGE))
    assert "no attribute 'axes'" in failing(one(node("Squeeze", ["x"], ["y"], axes=[0]), IMAGE))
    import_proto(one(node("Squeeze", ["x"], ["y"], axes=[0]), IMAGE, opset=11))
    import_proto(one(node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3]), IMAGE, constants=KERNEL))


@pytest.mark.parametrize(("operator", "shape"), [("Gather", (2,)), ("GatherElements", (1, 3, 1, 8))])
def test_a_constant_index_is_inside_its_axis(operator: str, shape: tuple[int, ...]) -> None:
    for index in (8, -9):
        made = one(node(operator, ["x", "i"], ["y"], axis=2), IMAGE, constants={"i": np.full(shape, index)})
        assert f"index {index} is outside an axis of 8 elements" in failing(made)
    for index in (7, -8):
        import_proto(one(node(operator, ["x", "i"], ["y"], axis=2), IMAGE, constants={"i": np.full(shape, index)}))


def test_a_shape_that_depends_on_large_data(tmp_path: Path) -> None:
    """The message names the input; compiling for each of its values is refused."""
    path = tmp_path / "m.onnx"
    path.write_bytes(one(node("Unique", ["x"], ["y"], axis=0), tensor("x", [100, 100])).SerializeToString())
    with pytest.raises(MscError, match=r"MSC0716.*'x' is too large"):
        msc.compile(path)(np.zeros((100, 100), np.float32))


def test_a_node_that_no_importer_foresees() -> None:
    """A permutation with an entry of 10^18 is the model's mistake, whatever Python raises for it."""
    text = failing(one(node("ReverseSequence", ["x", "n"], ["y"], time_axis=10**18), *SEQUENCE))
    assert "MSC0790" in text
    assert "ReverseSequence 'y' cannot be imported" in text


@pytest.mark.parametrize(
    ("proto", "shapes"),
    [
        (node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4), {"x": [2, 1, 2, 3], "w": [1, 16, 3], "r": [1, 16, 4]}),
        (node("GRU", ["x", "w", "r"], ["y"], hidden_size=4), {"x": [2, 3], "w": [1, 12, 3], "r": [1, 12, 4]}),
        (node("GridSample", ["x", "g"], ["y"]), {"x": [1, 1, 4, 4], "g": [1, 2, 2]}),
        (node("BatchNormalization", ["x", *"abcd"], ["y"]), {"x": [2, 3], **{key: [3, 1] for key in "abcd"}}),
        (node("ConvTranspose", ["x", "w"], ["y"]), {"x": [1, 1], "w": [1, 1, 3, 3]}),
        (node("DepthToSpace", ["x"], ["y"], blocksize=2), {"x": [4, 4]}),
    ],
    ids=lambda value: value.op_type if isinstance(value, NodeProto) else "",
)
def test_ranks_that_an_operator_does_not_take_are_told(proto: NodeProto, shapes: dict[str, list[int]]) -> None:
    text = failing(one(proto, *(tensor(name, shape) for name, shape in shapes.items())))
    assert "MSC0790" not in text
    assert proto.op_type in text


@pytest.mark.parametrize("name", ["?", "", " ", "unk", "None", "-1"])
def test_a_name_that_names_nothing_is_a_dimension_of_its_own(tmp_path: Path, name: str) -> None:
    """What exporters write for every unknown size: two such sizes may differ."""
    made = one(node("Relu", ["x"], ["y"]), tensor("x", [1, name, name]))
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    x = np.ones((1, 3, 5), np.float32)
    np.testing.assert_array_equal(msc.compile(path)(x), x)
    np.testing.assert_array_equal(msc.compile(path, dims={"x.1": 3, "x.2": (1, 8)})(x), x)


SEQUENCE = (tensor("x", [3, 2]), tensor("n", [2], TensorProto.INT64))


def test_onnx_models_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(formats, "find_spec", nothing)
    with pytest.raises(MscError, match="MSC0717"):
        FORMATS.find("onnx").read("net.onnx", CompileOptions().reading())
