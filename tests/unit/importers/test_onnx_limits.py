"""Models that ask for absurd amounts are refused before anything is allocated: what fuzzing found, and its like."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_opsetid

from msc.importers.onnx import builder, import_proto
from msc.support.diagnostics import MscError
from tests.unit.importers.models import model, node, tensor

HUGE = 1 << 31


def code(made: ModelProto) -> str:
    with pytest.raises(MscError) as caught:
        import_proto(made)
    assert not isinstance(caught.value.__cause__, MemoryError)
    return caught.value.diagnostics[0].code


X = tensor("x", [1, HUGE, 1])
Y = [tensor("y", None)]
ABSURD = {
    "DFT": model([node("DFT", ["x"], ["y"], axis=1)], [X], Y),
    "DFT of no parts": model([node("DFT", ["x"], ["y"], axis=1)], [tensor("x", [1, HUGE, 0])], Y),
    "STFT": model(
        [node("STFT", ["x", "step", "", "length"], ["y"])],
        [X],
        Y,
        {"step": np.array(1), "length": np.array(1 << 20)},
    ),
    "MelWeightMatrix": model(
        [node("MelWeightMatrix", ["bins", "length", "rate", "low", "high"], ["y"])],
        [],
        Y,
        {
            "bins": np.array(1 << 28),
            "length": np.array(8),
            "rate": np.array(8000),
            "low": np.array(0.0, np.float32),
            "high": np.array(4000.0, np.float32),
        },
    ),
    "MaxPool": model(
        [node("MaxPool", ["x"], ["y", "i"], kernel_shape=[1 << 10, 1 << 10])],
        [tensor("x", [1, 1, 1 << 14, 1 << 14])],
        Y,
    ),
    "DeformConv": model(
        [node("DeformConv", ["x", "w", "o"], ["y"], pads=[0, 1 << 40, 0, 0])],
        [tensor("x", [1, 1, 1, 1]), tensor("w", [1, 1, 2, 2]), tensor("o", [1, 8, 0, 1 << 40])],
        Y,
    ),
    "RoiAlign": model(
        [node("RoiAlign", ["x", "rois", "batch"], ["y"], output_height=HUGE, output_width=1, sampling_ratio=1)],
        [tensor("x", [1, 1, 8, 8]), tensor("rois", [1, 4]), tensor("batch", [1], TensorProto.INT64)],
        Y,
    ),
    "TfIdfVectorizer": model(
        [
            node(
                "TfIdfVectorizer",
                ["x"],
                ["y"],
                mode="TF",
                min_gram_length=1,
                max_gram_length=1,
                max_skip_count=0,
                pool_int64s=[1],
                ngram_counts=[0],
                ngram_indexes=[HUGE],
            )
        ],
        [tensor("x", [4], TensorProto.INT64)],
        Y,
    ),
}


@pytest.mark.parametrize("operator", ABSURD)
def test_tables_that_no_machine_holds(operator: str) -> None:
    assert code(ABSURD[operator]) == "MSC0708"


def test_sequences_of_absurd_length() -> None:
    nodes = [node("SplitToSequence", ["x"], ["s"], axis=1), node("SequenceLength", ["s"], ["y"])]
    assert code(model(nodes, [X], Y)) == "MSC0714"


def test_axes_resized_to_absurd_lengths() -> None:
    resize = node("Resize", ["x", "", "", "sizes"], ["y"], mode="cubic")
    assert code(model([resize], [tensor("x", [1, 2])], Y, {"sizes": np.array([1, 1 << 26])})) == "MSC0708"


def test_skips_beyond_the_row_take_no_time() -> None:
    grams = {"min_gram_length": 2, "max_gram_length": 2, "pool_int64s": [1, 2], "ngram_counts": [0, 0]}
    vectorizer = node("TfIdfVectorizer", ["x"], ["y"], mode="TF", max_skip_count=1 << 60, ngram_indexes=[0], **grams)
    import_proto(model([vectorizer], [tensor("x", [4], TensorProto.INT64)], Y))


def test_models_that_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAXIMUM_OPERATIONS", 10)
    assert code(model([node("Mean", ["x"] * 20, ["y"])], [tensor("x", [4])], Y)) == "MSC0714"


def test_a_hidden_size_that_the_weights_do_not_have() -> None:
    shapes = {"x": [2, 1, 1], "w": [1, HUGE, 1], "r": [1, HUGE, 1]}
    made = model(
        [node("LSTM", list(shapes), ["y"], hidden_size=1)], [tensor(name, shape) for name, shape in shapes.items()], Y
    )
    assert code(made) == "MSC0711"


@pytest.mark.parametrize("version", [1 << 40, -1])
def test_opsets_of_other_domains(version: int) -> None:
    made = model([node("Inverse", ["x"], ["y"], domain="other")], [tensor("x", [4])], Y)
    made.opset_import.append(make_opsetid("other", version))
    assert code(made) == "MSC0703"


def test_a_function_of_the_standard_that_cannot_be_built() -> None:
    """SequenceMap without its body."""
    nodes = [node("SequenceConstruct", ["x"], ["s"]), node("SequenceMap", ["s"], ["t"])]
    assert code(model([*nodes, node("SequenceLength", ["t"], ["y"])], [tensor("x", [4])], Y)) == "MSC0790"
