"""Event files, read again by Google's protobuf from messages that are declared here."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from PIL import Image

import msc
import msc.dataset as ds
from msc import Tensor, nn, ops
from msc.support.wire_format import read_record, record_places
from msc.train import LossMonitor, Model, SummaryCollector, SummaryRecord


def event_class() -> Any:
    """TensorFlow's messages, as far as they are used."""
    kinds = descriptor_pb2.FieldDescriptorProto
    types = {
        "double": kinds.TYPE_DOUBLE,
        "float": kinds.TYPE_FLOAT,
        "int64": kinds.TYPE_INT64,
        "int32": kinds.TYPE_INT32,
        "string": kinds.TYPE_STRING,
        "bytes": kinds.TYPE_BYTES,
    }
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="tf", syntax="proto3")
    for name, fields in {
        "Image": "1 int32 height, 2 int32 width, 3 int32 colorspace, 4 bytes encoded",
        "Histogram": "1 double min, 2 double max, 3 double num, 4 double sum, 5 double squares, 6 *double limit, "
        "7 *double bucket",
        "Value": "1 string tag, 2 float simple_value, 4 Image image, 5 Histogram histo",
        "Summary": "1 *Value value",
        "Event": "1 double wall_time, 2 int64 step, 3 string file_version, 5 Summary summary",
    }.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            number, kind, key = text.split()
            field = message.field.add(name=key, number=int(number), label=3 if kind.startswith("*") else 1)
            kind = kind.strip("*")
            if kind in types:
                field.type = types[kind]
            else:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".tf.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tf.Event"))


def events(folder: Path) -> list[Any]:
    (path,) = folder.iterdir()
    assert "tfevents" in path.name
    with path.open("rb") as file:
        places = list(record_places(file, path.stat().st_size))
        found = [event_class().FromString(read_record(file, *place)) for place in places]
    assert found[0].file_version == "brain.Event:2"
    return found[1:]


def values(folder: Path) -> dict[tuple[int, str], Any]:
    return {(e.step, v.tag): v for e in events(folder) for v in e.summary.value}


def test_what_is_added_is_in_the_file(tmp_path: Path) -> None:
    picture = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(1, 3, 4, 5)
    with SummaryRecord(tmp_path) as record:
        record.add_value("scalar", "loss", Tensor(0.5))
        record.add_value("image", "im", picture)
        record.add_value("histogram", "w", np.array([1.0, 2.0, np.nan]))
        assert record.record(3)
        assert not record.record(4)
    found = values(tmp_path)
    assert found[3, "loss"].simple_value == 0.5
    decoded = np.asarray(Image.open(io.BytesIO(found[3, "im"].image.encoded)))
    assert (decoded == picture[0].transpose(1, 2, 0)).all()
    histogram = found[3, "w"].histo
    assert (histogram.num, histogram.sum, histogram.min, histogram.max) == (2, 3, 1, 2)
    assert sum(histogram.bucket) == 2
    assert len(histogram.limit) == len(histogram.bucket)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()

    def construct(self, x: Any) -> Any:
        self.scalar("sum", x.sum())
        self.tensor("x", x)
        return x * 2


@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_operators_are_recorded_in_every_call(tmp_path: Path, mode: int) -> None:
    net = Net()
    with msc.set_context(mode=mode), SummaryRecord(tmp_path, network=net) as record:
        for step in (1, 2):
            net(Tensor([1.0, float(step)]))
            record.record(step)
    found = values(tmp_path)
    assert [found[step, "sum"].simple_value for step in (1, 2)] == [2, 3]
    assert found[2, "x"].histo.sum == 3


def test_a_collector_keeps_loss_rate_results_and_weights(tmp_path: Path) -> None:
    x = np.ones((8, 2), np.float32)
    data = ds.NumpySlicesDataset({"x": x, "y": x[:, :1]}).batch(2)
    net = nn.Dense(2, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.25), {"mse"})
    model.fit(2, data, data, callbacks=[SummaryCollector(tmp_path, collect_freq=2), LossMonitor(0)])
    found = values(tmp_path)
    assert {step for step, tag in found if tag == "loss"} == {1, 2, 4, 6, 8}
    assert found[2, "learning_rate"].simple_value == 0.25
    assert found[4, "weight"].histo.num == 2
    assert {step for step, tag in found if tag == "eval/mse"} == {4, 8}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda r: r.add_value("graph", "a", 1.0), "plugin is 'graph'"),
        (lambda r: r.add_value("scalar", "a", np.ones(2)), "a scalar is one number"),
        (lambda r: r.add_value("image", "a", np.ones((2, 2))), "an image is"),
        (lambda r: r.add_value("scalar", "a", "x"), "it takes a tensor"),
        (lambda r: r.record(-1), "step is -1"),
        (lambda r: SummaryCollector("x", collect_specified_data={"colour": 1}), "'colour'"),
    ],
)
def test_mistakes(tmp_path: Path, wrong: Any, words: str) -> None:
    with SummaryRecord(tmp_path) as record, pytest.raises(msc.MscError, match=words) as error:
        wrong(record)
    assert error.value.diagnostics[0].code == "MSC0878"


def test_summary_operators_take_tensors() -> None:
    with pytest.raises(msc.MscError, match="MSC0811"):
        ops.ScalarSummary()("a", Tensor([1.0, 2.0]))
