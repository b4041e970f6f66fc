"""Parameters that graphs update where they lie, unseen by whatever else holds their elements."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn
from msc.dialects.arrays import Array

START = np.arange(4, dtype=np.float32)


class Counter(nn.Cell):
    """Adds what it is given to a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.total = Parameter(Tensor(START), name="total")

    def construct(self, x: Tensor) -> Tensor:
        self.total.set_data(self.total + x)
        return self.total.sum()


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    with msc.set_context(mode=msc.GRAPH_MODE):
        yield


def elements(parameter: Parameter) -> Array:
    """The array that a parameter refers to."""
    return cast(Array, parameter.content)


def ones() -> Tensor:
    return Tensor(np.ones(4, np.float32))


def counted(steps: int = 2) -> Counter:
    """A counter after its first calls: its parameter's array is one that calls update."""
    cell = Counter()
    for _ in range(steps):
        cell(ones())
    return cell


def test_calls_update_one_array() -> None:
    cell = counted()
    array = id(cell.total.content)
    cell(ones())
    assert id(cell.total.content) == array
    np.testing.assert_array_equal(cell.total.asnumpy(), START + 3)


def test_the_array_that_a_parameter_was_made_of_stays() -> None:
    given = START.copy()
    cell = Counter()
    cell.total = Parameter(Tensor.from_numpy(given), name="total")
    cell(ones())
    np.testing.assert_array_equal(given, START)
    np.testing.assert_array_equal(cell.total.asnumpy(), START + 1)


HOLDERS: dict[str, Callable[[Parameter], Tensor]] = {
    "value": lambda p: p.value(),
    "tensor": lambda p: Tensor(p),
    "slice": lambda p: Tensor.of(elements(p)[1:]),
    "reshape": lambda p: Tensor.of(elements(p).reshape(2, 2)),
    "memory": lambda p: Tensor.of(np.frombuffer(elements(p).data, np.float32)),
    "clone": lambda p: p.clone(),
}


@pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)
def test_what_holds_the_elements_keeps_them(held: Callable[[Parameter], Tensor]) -> None:
    cell = counted()
    tensor = held(cell.total)
    before = np.array(tensor.asnumpy())
    cell(ones())
    np.testing.assert_array_equal(tensor.asnumpy(), before)
    np.testing.assert_array_equal(cell.total.asnumpy(), START + 3)
    array = id(cell.total.content)
    cell(ones())
    assert id(cell.total.content) == array


def test_two_parameters_of_one_array_are_two() -> None:
    first, second = counted(), counted()
    second.total.content = first.total.content
    first(ones())
    np.testing.assert_array_equal(first.total.asnumpy(), START + 3)
    np.testing.assert_array_equal(second.total.asnumpy(), START + 2)


class Swap(nn.Cell):
    """Exchanges two parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.a = Parameter(Tensor(START), name="a")
        self.b = Parameter(Tensor(START * 10), name="b")

    def construct(self, x: Tensor) -> Tensor:
        a, b = self.a * 1, self.b * 1
        self.a.set_data(b)
        self.b.set_data(a)
        return x + a


def test_parameters_are_exchanged() -> None:
    cell = Swap()
    for step in range(4):
        np.testing.assert_array_equal(cell(ones()).asnumpy(), 1 + START * (1, 10)[step % 2])
    np.testing.assert_array_equal(cell.a.asnumpy(), START)
    np.testing.assert_array_equal(cell.b.asnumpy(), START * 10)


class Given(nn.Cell):
    """Assigns one value to two parameters, and gives it back as well."""

    def __init__(self) -> None:
        super().__init__()
        self.a = Parameter(Tensor(START), name="a")
        self.b = Parameter(Tensor(START), name="b")

    def construct(self, x: Tensor) -> Tensor:
        value = self.a + self.b + x
        self.a.set_data(value)
        self.b.set_data(value)
        return value


def test_a_value_that_goes_to_several_places_is_one_in_each() -> None:
    cell = Given()
    first = cell(ones())
    second = cell(ones())
    np.testing.assert_array_equal(first.asnumpy(), 2 * START + 1)
    np.testing.assert_array_equal(second.asnumpy(), 2 * (2 * START + 1) + 1)
    np.testing.assert_array_equal(cell.a.asnumpy(), second.asnumpy())
    np.testing.assert_array_equal(cell.b.asnumpy(), second.asnumpy())


def test_a_graph_with_the_old_value_as_a_constant_is_compiled_again() -> None:
    cell = counted()

    @msc.jit
    def doubled(x: Tensor) -> Tensor:
        return cell.total * 2 + x

    for step in range(3, 6):
        cell(ones())
        np.testing.assert_array_equal(doubled(ones()).asnumpy(), 2 * (START + step) + 1)


def test_parameters_that_are_set_between_calls_count() -> None:
    cell = counted()
    cell.total.set_data(Tensor(np.zeros(4, np.float32)))
    assert cell(ones()).asnumpy() == 4
    cell.total = Parameter(Tensor(np.full(4, 2, np.float32)), name="total")
    assert cell(ones()).asnumpy() == 12


class Trained(nn.Cell):
    """A dense layer and its step."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(40, 24, activation="relu"), nn.Dense(24, 5))


def trained(steps: int) -> tuple[nn.Cell, nn.Cell]:
    msc.set_seed(1)
    net = Trained().net
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    random = np.random.default_rng(0)
    x, y = random.standard_normal((32, 40)).astype(np.float32), random.integers(0, 5, 32).astype(np.int32)
    for _ in range(steps):
        step(Tensor(x), Tensor(y))
    return net, step


def test_weights_lie_between_steps_as_products_read_them() -> None:
    net, _ = trained(2)
    weight = elements(net.trainable_params()[0])
    assert weight.T.flags.c_contiguous
    assert not weight.flags.c_contiguous


def test_a_network_in_training_is_evaluated_between_steps() -> None:
    net, step = trained(2)
    random = np.random.default_rng(5)
    for _ in range(3):
        x = random.standard_normal((8, 40)).astype(np.float32)
        w, b, v, c = (p.asnumpy() for p in net.trainable_params())
        expected = np.maximum(x @ w.T + b, 0) @ v.T + c
        np.testing.assert_allclose(net(Tensor(x)).asnumpy(), expected, rtol=1e-4, atol=1e-5)
        step(Tensor(np.zeros((32, 40), np.float32)), Tensor(np.zeros(32, np.int32)))


def test_steps_are_those_of_pynative_mode() -> None:
    graph = [p.asnumpy() for p in trained(3)[0].trainable_params()]
    with msc.set_context(mode=msc.PYNATIVE_MODE):
        eager = [p.asnumpy() for p in trained(3)[0].trainable_params()]
    for a, b in zip(graph, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_steps_beside_threads_that_read_are_right() -> None:
    cell = counted()
    stop = threading.Event()
    seen: list[float] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(float(cell.total.asnumpy().sum()))

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(50):
        cell(ones())
    stop.set()
    thread.join()
    np.testing.assert_array_equal(cell.total.asnumpy(), START + 52)
    assert sorted(seen) == seen


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import msc
from msc import Parameter, Tensor, nn
from msc.runtime import calls

calls.LONG = 0  # every call is made as one that may take long


class Loop(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = Parameter(Tensor(np.zeros(20000, np.int32)), name="first")
        self.second = Parameter(Tensor(np.zeros(20000, np.int32)), name="second")

    def construct(self, steps):
        i = Tensor(0, msc.int64)
        while i < steps:
            self.first = self.first + 1
            self.second = self.second + self.first * 0 + 1
            i = i + 1
        return i


msc.set_context(mode=msc.GRAPH_MODE)
loop = Loop()
loop(Tensor(1, msc.int64))
loop(Tensor(1, msc.int64))
start = time.perf_counter()
loop(Tensor(10000, msc.int64))
steps = int(10000 * 1.0 / (time.perf_counter() - start))
assert steps > 10000, steps  # the loop is compiled
before = loop.first.asnumpy()[0]
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    loop(Tensor(steps, msc.int64))
    print("not interrupted")
except KeyboardInterrupt:
    done = loop.first.asnumpy() - before
    print(np.all(done == steps), np.array_equal(loop.first.asnumpy(), loop.second.asnumpy()))
"""


def test_a_call_that_is_interrupted_updates_all_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "interrupted.py"
    file.write_text(INTERRUPTED, encoding="utf-8")
    result = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("True True\n", "")
