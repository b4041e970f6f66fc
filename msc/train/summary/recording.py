"""`SummaryRecord` and `SummaryCollector`: what is measured in training, as files for TensorBoard."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import re
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from msc.frontend.settings import unused
from msc.frontend.summaries import collected
from msc.frontend.tensor import Tensor, concrete
from msc.support.argument_values import file_path
from msc.support.arrays import Array
from msc.support.files import cannot_write, make_folder
from msc.support.wire_format import bytes_field, double_field, float_field, integer_field, record
from msc.train.callback.base import Callback, RunContext, count, loss_of, refuse, wrong

_PLUGINS = ("scalar", "tensor", "histogram", "image")


class SummaryRecord:
    """Writes an event file for TensorBoard in a folder. `add_value` and summary operators say what, `record` writes.

    As a context manager it closes the file at the end. Tensors are written as histograms. Raises MSC0878 and MSC0004.
    """

    def __init__(
        self,
        log_dir: str | Path,
        file_prefix: str = "events",
        file_suffix: str = "_MS",
        num_process: int = 32,
        network: Any = None,
        max_file_size: int | None = None,
        raise_exception: bool = False,
        export_options: object = None,
    ) -> None:
        unused(
            "SummaryRecord",
            num_process=num_process,
            max_file_size=max_file_size,
            raise_exception=raise_exception,
            export_options=export_options,
        )
        del network  # of which no graph is written
        folder = make_folder(file_path("log_dir", log_dir, "the path of a folder"))
        now = time.time()
        self._values: list[tuple[str, str, Any]] = []
        collected()
        stamp = f"{int(now)}.{time.monotonic_ns() % 1_000_000_000}"
        self._path = folder / f"{file_prefix}.out.tfevents.{stamp}.{socket.gethostname()}{file_suffix}"
        try:
            self._file = self._path.open("ab")
        except OSError as error:
            raise cannot_write(self._path, error) from None
        self._write(version(now))

    @property
    def log_dir(self) -> str:
        """The event file."""
        return str(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """Say in which mode, "train" or "eval", the values that follow are measured."""
        if mode not in ("train", "eval"):
            refuse("mode", mode, "'train' or 'eval'")

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Have the next `record` write a value: "scalar", "tensor", "histogram", or "image" [n, channels, h, w]."""
        if plugin not in _PLUGINS:
            refuse("plugin", plugin, "'scalar', 'tensor', 'histogram' or 'image'")
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("name", name, "the name of what is recorded")
        array = concrete(value, "a summary") if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
            refuse("value", value, "a tensor, an array or a number")
        if plugin == "scalar" and array.size != 1:
            wrong(f"'{name}' has shape {list(array.shape)}; a scalar is one number")
        if plugin == "image" and (array.ndim != 4 or array.shape[1] not in (1, 3) or not array.size):
            wrong(f"'{name}' has shape {list(array.shape)}; an image is [n, 1 or 3, height, width]")
        self._values.append((plugin, name, array))

    def record(self, step: int, train_network: object = None, plugin_filter: Any = None) -> bool:
        """Write what was added, and what summary operators were given, as measured at a step. Whether there was any."""
        del train_network
        count("step", step, 0)
        for plugin, name, array in collected():
            self.add_value(plugin, name, array)
        wanted = [v for v in self._values if plugin_filter is None or plugin_filter(v[0])]
        self._values = []
        if not wanted:
            return False
        self._write(event(time.time(), step, [_encoded(*value) for value in wanted]))
        return True

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except (OSError, ValueError) as error:
            raise cannot_write(self._path, error) from None

    def flush(self) -> None:
        """What was recorded is in the file already; this makes it durable."""
        if not self._file.closed:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _encoded(plugin: str, name: str, array: Any) -> bytes:
    if plugin == "scalar":
        return scalar(name, float(array.reshape(())))
    return image(name, array) if plugin == "image" else histogram(name, array)


class SummaryCollector(Callback):
    """Records loss, learning rate, results of evaluations and histograms of weights, every `collect_freq` steps.

    `collect_specified_data` says more: `collect_metric` (loss, rate and results), `histogram_regular` (a pattern for
    the names of weights, None for all). `keep_default_action=False` records only what it names.
    """

    def __init__(
        self,
        summary_dir: str | Path,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: Mapping[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: object = None,
        collect_tensor_freq: object = None,
        max_file_size: object = None,
        export_options: object = None,
    ) -> None:
        unused(
            "SummaryCollector",
            num_process=num_process,
            custom_lineage_data=custom_lineage_data,
            collect_tensor_freq=collect_tensor_freq,
            max_file_size=max_file_size,
            export_options=export_options,
        )
        self._folder, self._period = file_path("summary_dir", summary_dir), count("collect_freq", collect_freq)
        if collect_specified_data is not None and not isinstance(collect_specified_data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("collect_specified_data", collect_specified_data, "a dictionary")
        given = dict(collect_specified_data or {})
        for name in given:
            if not (name == "histogram_regular" or name.startswith("collect_")):
                wrong(f"collect_specified_data has '{name}'; it takes 'collect_metric' and 'histogram_regular'")
        self._measures = bool(given.get("collect_metric", keep_default_action))
        pattern = given.get("histogram_regular")
        if pattern is not None and not isinstance(pattern, str):
            refuse("histogram_regular", pattern, "a regular expression")
        wants = "histogram_regular" in given or keep_default_action
        self._weights = re.compile(pattern or "") if wants else None
        self._record: SummaryRecord | None = None

    def on_train_begin(self, run_context: RunContext) -> None:
        self._record = SummaryRecord(self._folder)

    def on_train_step_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        if facts.cur_step_num % self._period and facts.cur_step_num != 1 and not facts.dataset_sink_mode:
            collected()
            return
        record = cast(SummaryRecord, self._record)
        if self._measures:
            self._add_measures(record, facts)
        if self._weights is not None:
            for parameter in facts.network.trainable_params():
                if self._weights.search(parameter.name):
                    record.add_value("histogram", parameter.name, parameter)
        record.record(facts.cur_step_num)

    def _add_measures(self, record: SummaryRecord, facts: Any) -> None:
        loss = loss_of(facts.net_outputs)
        if loss is not None:
            record.add_value("scalar", "loss", loss)
        if facts.optimizer is not None:
            rates = facts.optimizer.get_lr()
            for place, rate in enumerate(rates if isinstance(rates, tuple) else (rates,)):
                record.add_value("scalar", f"learning_rate/{place}" if place else "learning_rate", rate)
                if not isinstance(rates, tuple) or len(rates) > 16:
                    break

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        facts = run_context.original_args()
        record = cast(SummaryRecord, self._record)
        for name, value in (facts.eval_results or {}).items():
            if self._measures and np.size(value) == 1:
                record.add_value("scalar", f"eval/{name}", np.asarray(value, np.float64))
        record.record(facts.cur_step_num)

    def on_train_end(self, run_context: RunContext) -> None:
        if self._record is not None:
            self._record.close()

    def on_eval_begin(self, run_context: RunContext) -> None:
        pass

    on_eval_step_end = on_eval_epoch_end = on_eval_end = on_eval_begin


# TensorBoard's event files: records of protobuf messages.
#
#     Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
#     Summary { repeated Value value = 1; }
#     Value { string tag = 1; float simple_value = 2; Image image = 4; HistogramProto histo = 5; }
#     Image { int32 height = 1; int32 width = 2; int32 colorspace = 3; bytes encoded_image_string = 4; }
#     HistogramProto { double min = 1; double max = 2; double num = 3; double sum = 4; double sum_squares = 5;
#                      repeated double bucket_limit = 6 [packed]; repeated double bucket = 7 [packed]; }
#
# Source: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
_BUCKETS = 30


def version(wall_time: float) -> bytes:
    """The record that a file begins with."""
    return record(double_field(1, wall_time) + bytes_field(3, b"brain.Event:2"))


def event(wall_time: float, step: int, values: list[bytes]) -> bytes:
    """The record of what was measured at a step."""
    summary = b"".join(bytes_field(1, value) for value in values)
    return record(double_field(1, wall_time) + integer_field(2, step) + bytes_field(5, summary))


def scalar(tag: str, value: float) -> bytes:
    """A number."""
    return bytes_field(1, tag.encode()) + float_field(2, value)


def histogram(tag: str, values: Array) -> bytes:
    """How elements are distributed; those that are no numbers are left out."""
    flat = np.asarray(values, np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    counts, limits = np.histogram(flat, _BUCKETS) if flat.size else (np.zeros(1), np.array([0.0, 1.0]))
    numbers = (flat.min(), flat.max()) if flat.size else (0.0, 0.0)
    fields = (*numbers, float(flat.size), float(flat.sum()), float(np.square(flat).sum()))
    message = b"".join(double_field(k + 1, float(value)) for k, value in enumerate(fields))
    message += bytes_field(6, limits[1:].astype("<f8").tobytes()) + bytes_field(7, counts.astype("<f8").tobytes())
    return bytes_field(1, tag.encode()) + bytes_field(5, message)


def image(tag: str, pixels: Array) -> bytes:
    """The first image of [n, channels, height, width], with 1 or 3 channels; floats are scaled to their range."""
    first: Array = np.moveaxis(pixels[0], 0, -1)
    if first.dtype != np.uint8:
        low, high = float(first.min()), float(first.max())
        first = np.round((first - low) * (255 / (high - low if high > low else 1))).astype(np.uint8)
    height, width, channels = first.shape
    message = b"".join(integer_field(k + 1, value) for k, value in enumerate((height, width, channels)))
    return bytes_field(1, tag.encode()) + bytes_field(4, message + bytes_field(4, png(first)))


def png(pixels: Array) -> bytes:
    """[height, width, 1 or 3] of UInt8 as a PNG file. Source: https://www.w3.org/TR/png."""
    height, width, channels = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
