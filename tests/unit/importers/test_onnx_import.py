"""What the importer makes of models: folded shapes, bound values, functions, control flow, parameters, names."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, GraphProto, TensorProto
from onnx.helper import make_function, make_graph, make_opsetid
from onnx.numpy_helper import to_array
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import msc
from msc.dialects.arrays import Array
from msc.driver.artifacts.model_on_call import ModelOnCall
from msc.driver.passes.registry import new_context
from msc.formats.own_files import save
from msc.importers.imported import Imported
from msc.importers.onnx import import_model, import_proto
from msc.interp import evaluate
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import MscError
from msc.weights.module_weights import Weights
from tests.unit.importers.models import HOSTILE_NAMES, classifier, model, node, tensor


def operations(module: ModuleOp) -> list[str]:
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    return [op.name for op in function.body.block.ops]


def run(imported: Imported, *arrays: Array) -> tuple[Array, ...]:
    verify_module(imported.module)
    return evaluate(imported.module, arrays, imported.weights)


def test_shapes_fold_away_and_weights_are_parameters() -> None:
    imported = import_proto(classifier(), dims={"batch": 2}, input_values={"axes": np.array([1])})
    names = operations(imported.module)
    assert "ms.gather" not in names
    assert "ms.concat" not in names
    assert set(imported.weights) == {"conv.w", "fc.w"}
    reference = cast(Any, ReferenceEvaluator(classifier()))  # its stubs are partly untyped
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    (wanted,) = reference.run(None, {"x": x, "axes": np.array([1])})
    np.testing.assert_allclose(run(imported, x)[0], wanted, rtol=1e-4)


def test_operations_know_their_nodes() -> None:
    imported = import_proto(classifier(), "net.onnx", dims={"batch": 2}, input_values={"axes": np.array([1])})
    (conv,) = [op for op in imported.module.walk() if op.name == "ms.conv2d"]
    assert "net.onnx (Conv 'conv1')" in str(conv.location)


def test_a_saved_model_reads_back(tmp_path: Path) -> None:
    imported = import_proto(classifier(), dims={"batch": 1}, input_values={"axes": np.array([0])})
    save(imported, tmp_path / "net.mir")
    module = parse_module(new_context(), (tmp_path / "net.mir").read_text("utf-8"), "net.mir")
    verify_module(module)
    x = np.ones((1, 3, 6, 6), np.float32)
    again = evaluate(module, (x,), Weights.of_module(module, tmp_path))
    np.testing.assert_array_equal(again[0], run(imported, x)[0])


def test_a_model_specialises_on_values_and_shapes(tmp_path: Path) -> None:
    """Also with weights in another file; the public function does, and what it has compiled it keeps."""
    cast(Any, onnx).save(
        classifier(), tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=100
    )
    function = msc.compile(tmp_path / "m.onnx")
    assert isinstance(function, ModelOnCall)
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    reference = cast(Any, ReferenceEvaluator(classifier()))
    for axis in (0, 1, 0):
        given = {"x": x, "axes": np.array([axis])}
        np.testing.assert_allclose(function(**given), reference.run(None, given)[0], rtol=1e-4, atol=1e-5)
    assert function.bound == {"axes"}
    with pytest.raises(MscError, match="MSC0603"):
        function(x[:, :2], np.array([0]))
    with pytest.raises(MscError, match="MSC0604"):
        function(x.astype(np.float64), np.array([0]))
    with pytest.raises(MscError, match=r"(?s)MSC0713.*--dim batch=1"):
        function.save(tmp_path / "m.so")


def test_values_of_inputs_are_given_to_the_public_function(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(classifier().SerializeToString())
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    function = msc.compile(tmp_path / "m.onnx", dims={"batch": 2}, input_values={"axes": [1]})
    assert [t.name for t in function.signature.inputs] == ["x"]
    (expected,) = cast(Any, ReferenceEvaluator(classifier())).run(None, {"x": x, "axes": np.array([1])})
    np.testing.assert_allclose(function(x), expected, rtol=1e-4, atol=1e-5)


def test_local_functions_are_inlined() -> None:
    body = [node("Mul", ["a", "a"], ["s"]), node("LeakyRelu", ["s"], ["r"])]
    body[1].attribute.append(AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT))
    function = make_function("own", "Twice", ["a"], ["r"], body, [make_opsetid("", 17)], ["slope"])
    call = node("Twice", ["x"], ["y"], domain="own", slope=0.5)
    made = model([call], [tensor("x", [2])], [tensor("y", [2])], functions=[function], domains=["own"])
    imported = import_proto(made)
    assert operations(imported.module) == ["ms.mul", "ms.leaky_relu", "func.return"]


def test_a_loop_of_a_known_count_is_unrolled() -> None:
    body = make_graph(
        [node("Add", ["v", "x"], ["w"]), node("Identity", ["c"], ["d"])],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("v", [2])],
        [tensor("d", [], TensorProto.BOOL), tensor("w", [2])],
    )
    loop = node("Loop", ["n", "", "x"], ["y"], body=body)
    made = model([loop], [tensor("x", [2])], [tensor("y", [2])], {"n": np.array(3)})
    np.testing.assert_array_equal(run(import_proto(made), np.array([1, 2], np.float32))[0], [4, 8])


def test_both_branches_of_a_computed_condition_are_chosen_from() -> None:
    def branch(operator: str) -> GraphProto:
        return make_graph([node(operator, ["x"], [operator])], operator, [], [tensor(operator, [2])])

    choice = node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))
    made = model([choice], [tensor("x", [2]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [2])])
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(import_proto(made), x, np.array(True))[0], -x)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_hostile_names_become_identifiers(name: str, tmp_path: Path) -> None:
    nodes = [node("Add", ["x", name], ["y"], name=name), node("Neg", ["y"], [name + "."], name=name)]
    constants = {name: np.ones((300,), np.float32)}
    imported = import_proto(model(nodes, [tensor("x", [300])], [tensor(name + ".", [300])], constants))
    (symbol,) = imported.weights
    assert symbol.replace("_", "").replace(".", "").isalnum()
    assert len(symbol) < 128
    save(imported, tmp_path / "m.mir")
    verify_module(parse_module(new_context(), (tmp_path / "m.mir").read_text("utf-8"), "m.mir"))


def test_external_data_is_mapped(tmp_path: Path) -> None:
    made = classifier()
    cast(Any, onnx).save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    imported = import_model(tmp_path / "m.onnx", dims={"batch": 1}, input_texts={"axes": "1"})
    assert imported.files == ("m.bin",)
    assert not imported.weights["fc.w"].flags.owndata
    wanted = to_array(classifier().graph.initializer[1])
    np.testing.assert_array_equal(imported.weights["fc.w"], wanted)


@pytest.mark.parametrize("opset", range(7, onnx.defs.onnx_opset_version() + 1))
def test_every_opset(opset: int) -> None:
    """A model whose operators are in all of them, and changed on the way."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Softmax", ["f"], ["y"], axis=1),
    ]
    w = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    made = model(nodes, [tensor("x", [2, 3, 6, 6])], [tensor("y", [2, 4])], {"w": w}, opset=opset)
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    (wanted,) = cast(Any, ReferenceEvaluator(made)).run(None, {"x": x})
    np.testing.assert_allclose(run(import_proto(made), x)[0], wanted, rtol=1e-5)


def test_a_long_range_that_is_known_is_no_parameter() -> None:
    """Whatever it was computed by: passes see the places that a mask compares."""
    places = (np.arange(2000) * 3 - 7).reshape(2000, 1)
    nodes = [node("Mul", ["x", "p"], ["y"]), node("Add", ["y", "d"], ["z"])]
    known = {"p": places, "d": np.where(places == 2, 5, places)}
    proto = model(nodes, [tensor("x", [1, 3], TensorProto.INT64)], [tensor("z", [2000, 3], TensorProto.INT64)], known)
    imported = import_proto(proto)
    assert set(imported.weights) == {"d"}
    assert "ms.iota" in [op.name for op in imported.module.walk()]
    x = np.array([[1, -2, 3]])
    np.testing.assert_array_equal(run(imported, x)[0], x * places + known["d"])
