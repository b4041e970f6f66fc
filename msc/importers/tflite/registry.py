"""The table of importers: the schema's name of an operator -> the function that writes `ms` for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.support.families import Table

Importer: TypeAlias = Callable[[TfliteNode], "TfliteValue | Sequence[TfliteValue]"]

importer: Table[str, Importer] = Table(
    "importers",
    "msc.importers.tflite.operators",
    "activations",
    "arithmetic",
    "convolution",
    "indexing",
    "movement",
    "pooling",
    "quantisation",
    "recurrent",
    "reductions",
    "resizing",
)
"""Declares importers, by operators' names."""
