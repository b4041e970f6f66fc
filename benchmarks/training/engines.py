"""Engines that take training steps, each behind a call that takes one on the same data and gives the loss."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

import msc
from benchmarks.training.networks import Task
from msc import Tensor, nn
from msc.dialects.arrays import Array

RATE, MOMENTUM = 0.01, 0.9


@dataclass(frozen=True)
class Engine:
    """Something that trains: `step` takes a step and gives the loss before it."""

    step: Callable[[], Array]
    peak_bytes: int
    """Of a step, at once, beside data, weights and momenta."""
    compile_seconds: float
    inference_compile_seconds: float | None = None


def network(task: Task) -> nn.Cell:
    """The network with its weights: small random ones, the same in every process."""
    rng = np.random.default_rng(1)
    net = task.make()
    for name, parameter in net.parameters_dict().items():
        fixed = {"gamma": 1.0, "moving_variance": 1.0, "beta": 0.0, "moving_mean": 0.0}.get(name.rpartition(".")[2])
        deviation = 1 / np.sqrt(max(1, np.prod(parameter.shape[1:]))) if len(parameter.shape) > 1 else 0.01
        values = rng.standard_normal(parameter.shape) * deviation if fixed is None else np.full(parameter.shape, fixed)
        parameter.set_data(Tensor(values.astype(np.float32)))
    return net


def training_step(net: nn.Cell) -> nn.Cell:
    """A step that trains the network: cross-entropy of labels, and momentum."""
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    momentum = nn.Momentum(net.trainable_params(), RATE, MOMENTUM)
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), momentum).set_train()


def with_msc(name: str, task: Task, threads: int) -> Engine:
    """`msc.compile` of a TrainOneStepCell, called with arrays; weights and momenta are updated in place.

    They lie in memory as the step reads them.
    """
    del name
    net, (x, y) = network(task), task.data()
    net.set_train(False)
    start = time.perf_counter()
    msc.compile(net, Tensor(x), threads=threads, use_cache=False)
    inference = time.perf_counter() - start
    step = training_step(net)
    start = time.perf_counter()
    model = msc.compile(step, Tensor(x), Tensor(y), threads=threads, use_cache=False, any_layout=True)
    seconds = time.perf_counter() - start
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    states = [model.state(t.name, values[t.name]) for t in model.inputs[2:]]
    signature = model.signature
    results = sum(t.bytes for t in signature.outputs)
    return Engine(lambda: _first(model(x, y, *states)), signature.workspace_bytes + results, seconds, inference)


def _first(results: Any) -> Array:
    several: list[Any] = [*results] if isinstance(results, tuple) else [results]
    return np.asarray(several[0])


def with_torch(name: str, task: Task, threads: int, *, compiled: bool = False) -> Engine:
    """PyTorch with its fused SGD; compiled, so are the network with its loss, and the optimiser's step."""
    torch: Any = importlib.import_module("torch")
    models: Any = importlib.import_module("benchmarks.torch_models.training")
    torch.set_num_threads(threads)
    module, net, (x, y) = models.MODULES[name](), network(task), task.data()
    values = {models.torch_name(p.name): torch.from_numpy(p.asnumpy().copy()) for p in net.get_parameters()}
    own = module.state_dict()
    module.load_state_dict({key: own[key] if "num_batches" in key else values[key] for key in own})
    module.train()
    optimiser = torch.optim.SGD(module.parameters(), RATE, momentum=MOMENTUM, fused=True)
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y).long()

    def loss() -> Any:
        return torch.nn.functional.cross_entropy(module(inputs), labels)

    forward = torch.compile(loss) if compiled else loss
    update = torch.compile(optimiser.step) if compiled else optimiser.step

    def step() -> Array:
        optimiser.zero_grad()
        value = forward()
        value.backward()
        update()
        return value.detach().numpy()

    before = [p.detach().clone() for p in module.state_dict().values()]
    start = time.perf_counter()
    step()
    step()
    seconds = time.perf_counter() - start
    peak = _peak(torch, step)
    with torch.no_grad():
        for tensor, value in zip(module.state_dict().values(), before, strict=True):
            tensor.copy_(value)
        for state in optimiser.state.values():
            state["momentum_buffer"].zero_()
    return Engine(step, peak, seconds)


def _peak(torch: Any, step: Callable[[], Array]) -> int:
    """The most that a step has allocated at once, by PyTorch's own account."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


@contextmanager
def on_cpus(count: int) -> Generator[None]:
    """The first `count` CPUs alone: XLA makes as many threads as there are, which stay on them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def with_jax(name: str, task: Task, threads: int) -> Engine:
    """JAX: network, gradient and update under one `jax.jit`, whose parameters and momenta are donated."""
    with on_cpus(threads):
        jax: Any = importlib.import_module("jax")
        models: Any = importlib.import_module("benchmarks.training.jax_networks")
        net, (x, y) = network(task), task.data()
        weights, kept = models.parameters({p.name: p.asnumpy() for p in net.get_parameters()})
        state = [weights, kept, jax.tree.map(jax.numpy.zeros_like, weights)]
        inputs = jax.numpy.asarray(x), jax.numpy.asarray(y)
        start = time.perf_counter()
        compiled = models.step_of(models.NETWORKS[name], RATE, MOMENTUM).lower(*state, *inputs).compile()
        seconds = time.perf_counter() - start
        analysis = compiled.memory_analysis()

    def step() -> Array:
        *state[:], loss = compiled(*state, *inputs)
        return np.asarray(jax.block_until_ready((state, loss))[1])

    peak = analysis.temp_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    return Engine(step, peak, seconds)


def is_installed(engine: str) -> bool:
    """Whether the package of an engine is there."""
    return find_spec(engine.partition("-")[0]) is not None


ENGINES: dict[str, Callable[[str, Task, int], Engine]] = {
    "msc": with_msc,
    "torch": with_torch,
    "torch-compile": lambda name, task, threads: with_torch(name, task, threads, compiled=True),
    "jax": with_jax,
}
"""By name, which begins with that of the package."""
