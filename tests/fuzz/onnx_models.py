"""ONNX models: those of the conformance suite, damaged in structure or in bytes, imported and verified."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from google.protobuf.message import DecodeError
from onnx import ModelProto

from msc.importers.onnx import import_proto
from msc.importers.onnx.reading.model_file import parse_model
from msc.importers.onnx.registry import operators
from msc.ir.verification import verify_module
from tests.fuzz.protobuf_damage import damage

MAXIMUM_SEED_BYTES = 1 << 14
_WORDS = ("", "nowhere", "*/", "a\nb", "$(id)", "\0", "-", "ai.onnx.ml", *sorted(operators()))

Random = np.random.Generator


class OnnxModels:
    """The target `onnx`."""

    def seeds(self) -> Iterator[bytes]:
        """The node models of the suite, but for large ones."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from onnx.backend.test.case.node import collect_testcases

            models = [case.model for case in collect_testcases(None) if case.model is not None]
        for model in models:
            data = model.SerializeToString()
            if len(data) <= MAXIMUM_SEED_BYTES:
                yield data

    def run(self, data: bytes) -> str:
        """Parse, import, verify."""
        verify_module(import_proto(parse_model(data, "model.onnx")).module)
        return "module"

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """Mostly in structure: bytes that are no protobuf any more say little about the importer."""
        if random.random() < 0.2:
            return mutate(data)
        model = ModelProto()
        try:
            model.ParseFromString(data)
            for _ in range(int(random.integers(1, 4))):
                damage(model, random, _WORDS)
        except (DecodeError, UnicodeDecodeError):
            return mutate(data)
        return model.SerializeToString()
