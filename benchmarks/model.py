"""What a measured model is: an ONNX file that every engine gets, its inputs, and how much work it is."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.onnx_graph import OnnxGraph, multiply_adds, weight_bytes

SEED = 2

Array = npt.NDArray[Any]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the models of this process are written; it goes when the process goes."""
    return tempfile.TemporaryDirectory(prefix="msc-benchmarks-")


class Model(ABC):
    """One network at one size; the first result is what is compared."""

    name: str
    dims: Mapping[str, tuple[int, int]] = {}
    """Ranges of the dimensions that a call decides, by name."""
    sizes: Mapping[str, int] = {}
    """Those of the example."""
    tolerance: float = 1e-4
    """Largest accepted difference of two engines, relative to the largest magnitude in the result."""

    @abstractmethod
    def example(self) -> dict[str, Array]:
        """Seeded inputs by name, in the order of the call."""

    @abstractmethod
    def torch_module(self) -> Any:
        """The same network as a PyTorch module in evaluation mode, over the same weights."""

    @abstractmethod
    def _write(self, path: Path) -> None:
        """Write the network as ONNX."""

    @property
    @abstractmethod
    def multiply_adds(self) -> int:
        """Of all convolutions and matrix products; nothing else is counted."""

    @cached_property
    def onnx(self) -> Path:
        """The network as an ONNX file, written when it is first asked for."""
        path = Path(_folder().name) / f"{self.name}.onnx"
        self._write(path)
        return path

    @property
    def weight_bytes(self) -> int:
        """Of all weights, as they stand in the file."""
        return weight_bytes(self.onnx)


class GraphModel(Model):
    """A network written in ONNX operators over named weights."""

    inputs: Mapping[str, tuple[int, ...]]

    @abstractmethod
    def nodes(self, graph: OnnxGraph) -> str:
        """Append the network to the ONNX graph, the node of the result last; its name."""

    def weights(self) -> Mapping[str, npt.NDArray[np.float32]]:
        """Weights that are there before the nodes; nodes may add more."""
        return {}

    @cached_property
    def graph(self) -> OnnxGraph:
        """The network over its weights; the last node gives the result."""
        graph = OnnxGraph(self.weights())
        self.nodes(graph)
        return graph

    def example(self) -> dict[str, Array]:
        """Seeded inputs, in [0, 1) as pixels are."""
        generator = np.random.default_rng(SEED)
        return {name: generator.random(shape, dtype=np.float32) for name, shape in self.inputs.items()}

    def torch_module(self) -> Any:
        from benchmarks.torch_graph import torch_module  # PyTorch takes seconds to import

        return torch_module(self.graph, list(self.inputs))

    def _write(self, path: Path) -> None:
        path.write_bytes(self.graph.finish(self.name, self.inputs))

    @property
    def multiply_adds(self) -> int:
        return multiply_adds(self.onnx)
