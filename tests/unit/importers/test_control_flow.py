"""If, Loop and Scan: what is decided at import, what becomes scf, and that both give what ONNX Runtime gives, in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_graph

from msc.importers.onnx import import_proto
from msc.support.diagnostics import MscError
from tests.unit.importers.agreement import agreed, names, normal
from tests.unit.importers.models import model, node, tensor

BOOL, INT = TensorProto.BOOL, TensorProto.INT64


def graph(
    nodes: Sequence[NodeProto], inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]
) -> GraphProto:
    return make_graph(list(nodes), "body", list(inputs), list(outputs))


def loop_body(
    nodes: Sequence[NodeProto], carried: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]
) -> GraphProto:
    """A body that keeps its condition, unless a node computes `again`."""
    nodes = list(nodes)
    if all("again" not in n.output for n in nodes):
        nodes.append(node("Identity", ["go"], ["again"]))
    return graph(nodes, [tensor("i", [], INT), tensor("go", [], BOOL), *carried], [tensor("again", [], BOOL), *outputs])


def branches(first: Sequence[NodeProto], second: Sequence[NodeProto], shape: Sequence[int]) -> dict[str, GraphProto]:
    pair = (("then_branch", first), ("else_branch", second))
    return {key: graph(nodes, [], [tensor(nodes[-1].output[0], list(shape))]) for key, nodes in pair}


@pytest.mark.parametrize("flag", [True, False])
def test_a_computed_condition_runs_one_branch(flag: bool) -> None:
    both = branches(
        [node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["a"])],
        [node("Neg", ["x"], ["n"]), node("Exp", ["n"], ["b"])],
        [4, 4],
    )
    nodes = [node("If", ["c"], ["y"], **both), node("Add", ["y", "x"], ["z"])]
    made = model(nodes, [tensor("x", [4, 4]), tensor("c", [], BOOL)], [tensor("z", [4, 4])], {"w": normal(4, 4)})
    imported = agreed(made, {"x": normal(4, 4, seed=1), "c": np.array(flag)})
    assert names(imported).count("scf.if") == 1
    assert "ms.select" not in names(imported)


def test_branches_that_compute_nothing_are_a_choice() -> None:
    both = branches([node("Identity", ["x"], ["a"])], [node("Identity", ["v"], ["b"])], [3])
    made = model(
        [node("If", ["c"], ["y"], **both)],
        [tensor("x", [3]), tensor("v", [3]), tensor("c", [1], BOOL)],
        [tensor("y", [3])],
    )
    imported = agreed(made, {"x": normal(3), "v": normal(3, seed=1), "c": np.array([False])})
    assert "scf.if" not in names(imported)
    assert "ms.select" in names(imported)


@pytest.mark.parametrize("wrong", ["then_branch", "else_branch"])
def test_a_branch_that_these_sizes_never_take_makes_the_condition_one_that_decides(wrong: str) -> None:
    """The branch is wrong for the sizes given: with the value of the condition it is not imported."""
    right = [node("Neg", ["x"], ["a"])]
    first, second = (_LSTM, right) if wrong == "then_branch" else (right, _LSTM)
    both = branches(first, second, [3, 4])
    constants = {"W": normal(1, 16, 4), "R": normal(1, 16, 4)}
    made = model([node("If", ["c"], ["y"], **both)], [tensor("x", [3, 4]), tensor("c", [], BOOL)], [Y], constants)
    with pytest.raises(MscError, match=rf"MSC0712.*{wrong} cannot be imported.*rank 3.*input 'c'"):
        import_proto(made)
    imported = import_proto(made, input_values={"c": np.array(wrong == "else_branch")})
    assert "ms.neg" in names(imported)


Y = tensor("y", [3, 4])
_LSTM = [node("LSTM", ["x", "W", "R"], ["o"], hidden_size=4)]


def test_branches_of_different_shapes_need_the_condition() -> None:
    both = branches([node("Neg", ["x"], ["a"])], [node("Concat", ["x", "x"], ["b"], axis=0)], [3])
    made = model([node("If", ["c"], ["y"], **both)], [tensor("x", [3]), tensor("c", [], BOOL)], [tensor("y", None)])
    with pytest.raises(MscError, match="condition, since the branches give results of different types") as caught:
        import_proto(made)
    assert caught.value.diagnostics[0].code == "MSC0712"
    assert "scf.if" not in names(import_proto(made, input_values={"c": np.array(True)}))


ACCUMULATE = [node("MatMul", ["v", "w"], ["p"]), node("Tanh", ["p"], ["t"]), node("Add", ["t", "x"], ["u"])]


def accumulating(count: int, extra: Sequence[NodeProto] = ()) -> ModelProto:
    """`v = tanh(v @ w) + x`, collecting v."""
    body = loop_body([*ACCUMULATE, *extra], [tensor("v", [2, 3])], [tensor("u", [2, 3]), tensor("u", [2, 3])])
    loop = node("Loop", ["n", "", "x"], ["y", "all"], body=body)
    outputs = [tensor("y", [2, 3]), tensor("all", [count, 2, 3])]
    return model([loop], [tensor("x", [2, 3])], outputs, {"w": normal(3, 3), "n": np.array(count)})


def test_a_long_loop_is_a_loop_and_its_values_are_written_in_place() -> None:
    imported = agreed(accumulating(9), {"x": normal(2, 3)})
    assert names(imported).count("scf.for") == 1
    assert names(imported).count("ms.insert_slice") == 1
    assert names(imported).count("ms.matmul") == 1


def test_a_short_loop_is_unrolled() -> None:
    imported = agreed(accumulating(3), {"x": normal(2, 3)})
    assert "scf.for" not in names(imported)
    assert names(imported).count("ms.matmul") == 3


def test_a_loop_collects_its_own_number() -> None:
    """The number is where the value is written, and the value."""
    body = loop_body([node("Identity", ["i"], ["j"])], [], [tensor("j", [], INT)])
    made = model([node("Loop", ["n", ""], ["all"], body=body)], [], [tensor("all", [9], INT)], {"n": np.array(9)})
    assert "scf.for" in names(agreed(made, {}))


@pytest.mark.parametrize("count", [0, 1, 6])
def test_a_computed_count_is_the_bound_of_a_loop(count: int) -> None:
    body = loop_body(ACCUMULATE, [tensor("v", [2, 3])], [tensor("u", [2, 3])])
    loop = node("Loop", ["n", "", "x"], ["y"], body=body)
    made = model([loop], [tensor("x", [2, 3]), tensor("n", [], INT)], [tensor("y", [2, 3])], {"w": normal(3, 3)})
    imported = agreed(made, {"x": normal(2, 3), "n": np.array(count)})
    assert names(imported).count("scf.for") == 1


@pytest.mark.parametrize("limited", [False, True])
def test_a_computed_condition_is_a_while(limited: bool) -> None:
    """Newton's square root until the change is small."""
    nodes = [
        node("Div", ["x", "v"], ["q"]),
        node("Add", ["q", "v"], ["s"]),
        node("Mul", ["s", "half"], ["u"]),
        node("Sub", ["u", "v"], ["d"]),
        node("Abs", ["d"], ["m"]),
        node("ReduceMax", ["m"], ["r"], keepdims=0),
        node("Greater", ["r", "small"], ["again"]),
    ]
    body = loop_body(nodes, [tensor("v", [5])], [tensor("u", [5])])
    loop = node("Loop", ["n" if limited else "", "go0", "x"], ["y"], body=body)
    constants = {"half": np.array(0.5, np.float32), "small": np.array(1e-4, np.float32), "go0": np.array(True)}
    constants |= {"n": np.array(3)} if limited else {}
    made = model([loop], [tensor("x", [5])], [tensor("y", [5])], constants, opset=13)
    x = np.array([1, 2, 9, 100, 0.25], np.float32)
    imported = agreed(made, {"x": x})
    assert names(imported).count("scf.while") == 1


def test_a_loop_in_a_branch_in_a_loop() -> None:
    inner = loop_body([node("Add", ["k", "x"], ["l"])], [tensor("k", [3])], [tensor("l", [3])])
    inner.input[0].name, inner.input[1].name = "j", "go_in"
    inner.node[-1].input[0], inner.node[-1].output[0] = "go_in", "again_in"
    inner.output[0].name = "again_in"
    both = branches([node("Loop", ["n", "", "v"], ["a"], body=inner)], [node("Neg", ["v"], ["b"])], [3])
    nodes = [
        node("Mod", ["i", "two"], ["odd"]),
        node("Cast", ["odd"], ["c"], to=BOOL),
        node("If", ["c"], ["u"], **both),
    ]
    body = loop_body(nodes, [tensor("v", [3])], [tensor("u", [3])])
    constants = {"n": np.array(5), "two": np.array(2)}
    made = model([node("Loop", ["n", "", "x"], ["y"], body=body)], [tensor("x", [3])], [tensor("y", [3])], constants)
    imported = agreed(made, {"x": normal(3)})
    assert names(imported).count("scf.for") == 2
    assert names(imported).count("scf.if") == 1


@pytest.mark.parametrize("constant", [False, True])
def test_what_a_loop_gathers_by_its_number_is_read_in_place(constant: bool) -> None:
    nodes = [node("Gather", ["x", "i"], ["e"], axis=0), node("Add", ["v", "e"], ["u"])]
    body = loop_body(nodes, [tensor("v", [4])], [tensor("u", [4])])
    table = {"x": normal(6, 4)}
    inputs = [tensor("z", [4]), *([] if constant else [tensor("x", [6, 4])])]
    constants = {"n": np.array(6)} | (table if constant else {})
    made = model([node("Loop", ["n", "", "z"], ["y"], body=body)], inputs, [tensor("y", [4])], constants)
    assert "scf.for" in names(agreed(made, {"z": normal(4, seed=1)} | ({} if constant else table)))


def test_a_value_that_no_iteration_changes_is_not_carried() -> None:
    nodes = [node("Mul", ["v", "k"], ["u"]), node("Identity", ["k"], ["same"])]
    body = loop_body(nodes, [tensor("v", [4]), tensor("k", [4])], [tensor("u", [4]), tensor("same", [4])])
    loop = node("Loop", ["n", "", "x", "z"], ["y", "k_after"], body=body)
    made = model([loop, node("Add", ["y", "k_after"], ["s"])], [tensor("x", [4]), tensor("z", [4])],
                 [tensor("s", [4])], {"n": np.array(7)})  # fmt: skip
    imported = agreed(made, {"x": normal(4), "z": normal(4, seed=1)})
    (made_loop,) = [op for op in imported.module.walk() if op.name == "scf.for"]
    assert len(made_loop.results) == 1


def test_values_that_trade_places() -> None:
    nodes = [node("Tanh", ["b"], ["c"]), node("Identity", ["a"], ["d"])]
    body = loop_body(nodes, [tensor("a", [4]), tensor("b", [4])], [tensor("c", [4]), tensor("d", [4])])
    made = model([node("Loop", ["n", "", "x", "z"], ["y", "w"], body=body)], [tensor("x", [4]), tensor("z", [4])],
                 [tensor("y", [4]), tensor("w", [4])], {"n": np.array(7)})  # fmt: skip
    agreed(made, {"x": normal(4), "z": normal(4, seed=1)})


def growing() -> GraphProto:
    return loop_body([node("Concat", ["v", "x"], ["u"], axis=0)], [tensor("v", [None])], [tensor("u", [None])])


def test_a_value_that_grows_is_unrolled_or_refused() -> None:
    made = model([node("Loop", ["n", "", "x"], ["y"], body=growing())], [tensor("x", [2])], [tensor("y", None)],
                 {"n": np.array(6)})  # fmt: skip
    assert "scf.for" not in names(agreed(made, {"x": normal(2)}))
    computed = model([node("Loop", ["n", "", "x"], ["y"], body=growing())],
                     [tensor("x", [2]), tensor("n", [], INT)], [tensor("y", None)])  # fmt: skip
    with pytest.raises(MscError, match="trip count must be known") as caught:
        import_proto(computed)
    (note,) = caught.value.diagnostics[0].notes
    assert "tensor<2xf32> before an iteration, but tensor<4xf32> after it" in note
    imported = import_proto(computed, input_values={"n": np.array(2)})
    assert names(imported).count("ms.concat") == 2


def test_what_is_collected_needs_a_known_size() -> None:
    body = loop_body(ACCUMULATE, [tensor("v", [2, 3])], [tensor("u", [2, 3]), tensor("u", [2, 3])])
    loop = node("Loop", ["n", "", "x"], ["y", "all"], body=body)
    made = model([loop], [tensor("x", [2, 3]), tensor("n", [], INT)], [tensor("all", None)], {"w": normal(3, 3)})
    with pytest.raises(MscError, match="trip count, which is how many values are collected") as caught:
        import_proto(made)
    assert caught.value.diagnostics[0].code == "MSC0712"
    agreed(made, {"x": normal(2, 3), "n": np.array(8)}, input_values={"n": np.array(8)})


def scanning(**attributes: Any) -> ModelProto:
    body = graph(
        [node("Mul", ["s", "e"], ["p"]), node("Add", ["p", "e"], ["t"]), node("Neg", ["t"], ["o"])],
        [tensor("s", [3]), tensor("e", [3])],
        [tensor("t", [3]), tensor("o", [3])],
    )
    scan = node("Scan", ["z", "x"], ["last", "y"], body=body, num_scan_inputs=1, **attributes)
    axis = attributes.get("scan_input_axes", [0])[0]
    shape = [3, 7] if axis in (1, -1) else [7, 3]
    out = [3, 7] if attributes.get("scan_output_axes", [0])[0] == 1 else [7, 3]
    return model([scan], [tensor("z", [3]), tensor("x", shape)], [tensor("last", [3]), tensor("y", out)])


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_directions": [1]},
        {"scan_output_directions": [1]},
        {"scan_input_directions": [1], "scan_output_directions": [1]},
        {"scan_input_axes": [1], "scan_output_axes": [1]},
    ],
    ids=str,
)
def test_scans_in_all_directions(attributes: dict[str, Any]) -> None:
    shape = (3, 7) if "scan_input_axes" in attributes else (7, 3)
    imported = agreed(scanning(**attributes), {"z": normal(3), "x": normal(*shape, seed=1)})
    assert names(imported).count("scf.for") == 1
    assert "ms.concat" not in names(imported)
    assert "ms.stack" not in names(imported)


def test_a_state_that_grows_while_it_scans() -> None:
    body = graph(
        [node("Concat", ["s", "e"], ["t"], axis=0)], [tensor("s", [None]), tensor("e", [2])], [tensor("t", [None])]
    )
    scan = node("Scan", ["z", "x"], ["last"], body=body, num_scan_inputs=1)
    made = model([scan], [tensor("z", [3]), tensor("x", [7, 2])], [tensor("last", None)])
    with pytest.raises(MscError, match="tensor<3xf32> before an iteration, but tensor<5xf32> after it") as caught:
        import_proto(made)
    assert caught.value.diagnostics[0].code == "MSC0719"
    assert "one shape" in str(caught.value.diagnostics[0].help)
