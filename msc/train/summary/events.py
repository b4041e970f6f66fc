"""TensorBoard's event files: records of protobuf messages.

    Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
    Summary { repeated Value value = 1; }
    Value { string tag = 1; float simple_value = 2; Image image = 4; HistogramProto histo = 5; }
    Image { int32 height = 1; int32 width = 2; int32 colorspace = 3; bytes encoded_image_string = 4; }
    HistogramProto { double min = 1; double max = 2; double num = 3; double sum = 4; double sum_squares = 5;
                     repeated double bucket_limit = 6 [packed]; repeated double bucket = 7 [packed]; }

Source: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from msc.support.arrays import Array
from msc.support.wire_format import bytes_field, double_field, float_field, integer_field, record

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
