"""Rows belong to whoever takes them: nobody's array is changed, and nobody changes theirs."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc import nn
from tests.random_pipelines.pipelines import Pipeline


@pytest.mark.parametrize("seed", range(40))
def test_random_pipelines(seed: int) -> None:
    Pipeline(seed).check()


def test_what_transforms_are_given_is_theirs() -> None:
    constant = np.zeros(2, np.float32)
    transforms = [
        ds.transforms.Concatenate(append=constant),
        ds.transforms.Fill(constant[:1]),
        ds.transforms.Mask(ds.transforms.Relational.GE, constant),
    ]
    before = [transform(np.zeros(2, np.float32)).tolist() for transform in transforms]
    constant += 5
    assert [transform(np.zeros(2, np.float32)).tolist() for transform in transforms] == before


def endless() -> Iterator[Any]:
    number = 0
    while True:
        yield (np.full(3, number, np.float32),)
        number += 1


def pipeline(workers: int, rows: int | None = None) -> ds.Dataset:
    return (
        ds.GeneratorDataset(endless, ["x"], num_samples=rows)
        .map(lambda x: x, "x", num_parallel_workers=workers)
        .batch(2)
    )


def broken(workers: int) -> None:
    for _ in pipeline(workers).create_tuple_iterator(num_epochs=1):
        break


def raised(workers: int) -> None:
    def reads() -> None:
        for _ in pipeline(workers).create_dict_iterator():
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        reads()


def deleted(workers: int) -> None:
    iterator = pipeline(workers).create_tuple_iterator()
    next(iterator)
    del iterator


def in_a_cycle(workers: int) -> None:
    iterator: Any = pipeline(workers).create_tuple_iterator()
    next(iterator)
    iterator.itself = iterator


def half_a_generator(workers: int) -> None:
    def rows() -> Iterator[Any]:
        yield from pipeline(workers).create_tuple_iterator()

    next(rows())


def peeked(workers: int) -> None:
    next(iter(pipeline(workers)))


def shaped(workers: int) -> None:
    pipeline(workers).output_shapes()


def failed(workers: int) -> None:
    def fails(x: Any) -> Any:
        return 1 / 0 if x[0] == 9 else x

    data = ds.GeneratorDataset(endless, ["x"]).map(fails, "x", num_parallel_workers=workers)
    with pytest.raises(ZeroDivisionError):
        list(data.create_tuple_iterator())


def sunk(workers: int) -> None:
    msc.data_sink(lambda x: x, pipeline(workers, 200))()


def stopped_training(workers: int) -> None:
    class Stops(msc.train.Callback):
        def step_end(self, run_context: Any) -> None:
            run_context.request_stop()

    net = nn.Dense(3, 1)
    model = msc.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    data = pipeline(workers, 200).map(lambda x: (x, x[:, :1]), "x", ["x", "y"])
    model.train(1, data, callbacks=[Stops()], dataset_sink_mode=False)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "use",
    [broken, raised, deleted, in_a_cycle, half_a_generator, peeked, shaped, failed, sunk, stopped_training],
)
def test_threads_end_with_their_iterators(use: Callable[[int], None], workers: int) -> None:
    before = set(threading.enumerate())
    for _ in range(3):
        use(workers)
    gc.collect()
    deadline = time.monotonic() + 20
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("place", ["map", "source", "filter"])
def test_rows_before_an_error_come_first(workers: int, place: str) -> None:
    def fails(x: Any) -> Any:
        return 1 / 0 if x[0] == 21 else x

    def rows() -> Iterator[Any]:
        for (x,) in endless():
            yield (fails(x) if place == "source" else x,)

    data = ds.GeneratorDataset(rows, ["x"])
    if place == "filter":
        data = data.filter(lambda x: fails(x) is x)
    data = data.map(fails if place == "map" else abs, "x", num_parallel_workers=workers)
    found: list[float] = []
    iterator = data.map(lambda x: x, "x").create_tuple_iterator(num_epochs=1, output_numpy=True)
    with pytest.raises(ZeroDivisionError):
        found.extend(row[0][0] for row in iterator)
    assert found == list(range(21))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_by_fork_says_that_the_iterator_is_not_its_own() -> None:
    data = ds.NumpySlicesDataset({"x": np.arange(1000)}, shuffle=False).map(abs, "x", num_parallel_workers=2)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert next(iterator)[0] == 0
    child = os.fork()
    if child == 0:
        code = 9
        try:
            next(iterator)
        except msc.MscError as error:
            code = int(error.diagnostics[0].code == "MSC0883")
            iterator.stop()
            code += next(iter(data))[0].item() == 0
        finally:
            os._exit(code)
    deadline, status = time.monotonic() + 60, (0, 0)
    while status[0] == 0 and time.monotonic() < deadline:
        status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    if status[0] == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert (status[0], os.waitstatus_to_exitcode(status[1])) == (child, 2)
    assert [row[0].item() for row in iterator] == list(range(1, 1000))


def test_values_that_a_column_cannot_have() -> None:
    for value, kind in ((-1, msc.uint32), (300, np.uint8), (0.5, np.int64), (np.nan, np.int32), (2, np.bool_)):
        data = ds.GeneratorDataset([np.array([0, value])], ["x"], [kind], shuffle=False)
        with pytest.raises(msc.MscError) as error:
            list(data)
        assert error.value.diagnostics[0].code == "MSC0884"
    fits = ds.GeneratorDataset([np.array([0, 7.0])], ["x"], [np.uint8], shuffle=False)
    assert next(fits.create_tuple_iterator(output_numpy=True))[0].tolist() == [0, 7]


@pytest.mark.filterwarnings("error")
def test_casts_are_those_of_c_and_do_not_warn() -> None:
    cast = ds.transforms.TypeCast(np.uint8)
    assert cast(np.array([-1, 300, 7])).tolist() == [255, 44, 7]
    cast(np.array([np.nan, np.inf, 1e30]))
    assert ds.transforms.TypeCast(np.float16)(np.array([1e30])).tolist() == [np.inf]
