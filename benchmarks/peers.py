"""The engines that are measured, each behind one call without arguments: one inference on the given inputs.

To add one: subclass ``Peer``, give its name and its package, write ``load``, and list it in ``PEERS``. An engine is
imported only when it is loaded, so one that is not installed costs nothing and is reported as absent.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import msc
from benchmarks.model import Array, Model

Runner = Callable[[], Array]


class PeerError(Exception):
    """An engine can't run a model; the message says why."""


class Peer(ABC):
    """One engine, called in one way."""

    name: str
    package: str
    """The distribution whose version is reported."""
    call: str
    """What one timed call contains, for the report."""

    def version(self) -> str | None:
        """The installed version; None if the engine is not installed."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    @abstractmethod
    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        """Compile or open the model for a number of threads; each call of the result infers once from ``inputs``."""


class Msc(Peer):
    name = "msc"
    package = msc.DISTRIBUTION
    call = "f(x), NumPy in and out"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        compiled: Any = importlib.import_module("msc").compile(model.onnx, threads=threads, dims=self._dims(model))
        if model.dims and hasattr(compiled, "reason"):
            raise PeerError(f"its sizes cannot be left open: {compiled.reason}")
        return lambda: _first(compiled(*inputs))

    def _dims(self, model: Model) -> Mapping[str, int | tuple[int, int]]:
        return dict(model.dims)


class MscFixed(Msc):
    """msc for the sizes of the example alone: what open sizes cost is the difference."""

    name = "msc-fixed"

    def _dims(self, model: Model) -> Mapping[str, int | tuple[int, int]]:
        return dict(model.sizes)


class MscParent(Msc):
    """msc on the model in f32 that was quantised: what bytes gain over it."""

    name = "msc-f32"
    call = "of the model in f32 that was quantised: f(x), NumPy in and out"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        parent = getattr(model, "parent", None)
        if parent is None:
            raise PeerError("it was made of no other model")
        return super().load(parent, inputs, threads)


def _first(results: Any) -> Any:
    """The result that is compared."""
    several: Any = results
    return several[0] if type(results) in (tuple, list) else results


def _session(model: Model, threads: int) -> Any:
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return runtime.InferenceSession(str(model.onnx), options, providers=["CPUExecutionProvider"])


class OnnxRuntime(Peer):
    name = "ort"
    package = "onnxruntime"
    call = "session.run, NumPy in and out"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        session = _session(model, threads)
        names = [value.name for value in session.get_inputs()]
        return lambda: session.run(None, dict(zip(names, inputs, strict=True)))[0]


class OnnxRuntimeBound(Peer):
    """Inputs and the result are bound once, so that a call moves no array across the language border."""

    name = "ort-bound"
    package = "onnxruntime"
    call = "session.run_with_iobinding on arrays bound beforehand"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        session = _session(model, threads)
        binding = session.io_binding()
        feed = dict(zip((value.name for value in session.get_inputs()), inputs, strict=True))
        for name, array in feed.items():
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        results = [np.empty_like(result) for result in session.run(None, feed)]
        for value, result in zip(session.get_outputs(), results, strict=True):
            binding.bind_output(value.name, "cpu", 0, result.dtype, result.shape, result.ctypes.data)

        def run() -> Array:
            session.run_with_iobinding(binding)
            return results[0]

        return run


def _torch_module(model: Model, threads: int) -> Any:
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(threads)
    return model.torch_module()


def _torch_runner(module: Any, inputs: Sequence[Array]) -> Runner:
    torch: Any = importlib.import_module("torch")
    tensors = [torch.from_numpy(array) for array in inputs]

    def run() -> Array:
        with torch.inference_mode():
            return _first(module(*tensors)).contiguous().numpy()

    return run


class Torch(Peer):
    name = "torch"
    package = "torch"
    call = "eager module(x) on tensors, under inference_mode"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        return _torch_runner(_torch_module(model, threads), inputs)


class TorchCompile(Peer):
    name = "torch-compile"
    package = "torch"
    call = "torch.compile(module)(x) on tensors, default mode, under inference_mode"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        torch: Any = importlib.import_module("torch")
        return _torch_runner(torch.compile(_torch_module(model, threads)), inputs)


class OpenVino(Peer):
    """In f32 as the others: by default OpenVINO computes in bf16 where the CPU can."""

    name = "openvino"
    package = "openvino"
    call = "request.infer(x) without copies, f32"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        core: Any = importlib.import_module("openvino").Core()
        options = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        request = core.compile_model(core.read_model(str(model.onnx)), "CPU", options).create_infer_request()
        values = list(inputs)
        return lambda: request.infer(values, share_inputs=True, share_outputs=True)[0]


class Iree(Peer):
    """``local-sync`` runs in the calling thread; with more threads ``local-task`` takes as many workers."""

    name = "iree"
    package = "iree-base-compiler"
    call = "module.main(x).to_host(), x on the device, -O3 for the host CPU"

    def load(self, model: Model, inputs: Sequence[Array], threads: int) -> Runner:
        runtime: Any = importlib.import_module("iree.runtime")
        runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
        config = runtime.Config("local-sync" if threads == 1 else "local-task")
        context = runtime.SystemContext(config=config)
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, _iree_binary(model)))
        names = [name for name in context.modules.module.vm_module.function_names if "$" not in name]
        function = context.modules.module[names[0]]
        values = [runtime.asdevicearray(config.device, array) for array in inputs]
        return lambda: _first(function(*values)).to_host()


def _iree_binary(model: Model) -> bytes:
    tools: Any = importlib.import_module("iree.compiler.tools")
    with tempfile.TemporaryDirectory() as folder:
        imported = Path(folder) / "model.mlir"
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(model.onnx), "-o", str(imported)]
        options = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"]
        try:
            subprocess.run(importer, check=True, capture_output=True, text=True)
            return tools.compile_file(
                str(imported), input_type="onnx", target_backends=["llvm-cpu"], extra_args=options
            )
        except subprocess.CalledProcessError as error:
            raise PeerError(str(error.stderr)[-300:]) from error
        except tools.CompilerToolError as error:
            raise PeerError(str(error)[:300]) from error


_ALL = (Msc(), MscFixed(), MscParent(), OnnxRuntime(), OnnxRuntimeBound(), Torch(), TorchCompile(), OpenVino(), Iree())

PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
