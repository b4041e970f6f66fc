"""Stages of data sets: what each gives, in which order, from any place on, and what it says of mistakes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc.dataset import vision
from msc.dataset.runs import EpochRun


def numbers(count: int, **options: Any) -> ds.Dataset:
    return ds.NumpySlicesDataset({"x": np.arange(count, dtype=np.float32), "y": np.arange(count) % 3}, **options)


def xs(dataset: Any) -> list[Any]:
    return [row["x"].tolist() for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def code(error: pytest.ExceptionInfo[msc.MscError]) -> str:
    return error.value.diagnostics[0].code


def test_stages_do_what_their_names_say() -> None:
    data = numbers(10, shuffle=False)
    assert xs(data.skip(2).take(3)) == [2, 3, 4]
    assert xs(data.filter(lambda y: y == 1, "y")) == [1, 4, 7]
    assert xs(data.map(lambda x: x * 2, "x").take(2)) == [0, 2]
    assert xs(data.take(2).repeat(3)) == [0, 1] * 3
    assert xs(data.take(2) + data.skip(9)) == [0, 1, 9]
    assert xs(data.batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert xs(data.batch(4, drop_remainder=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert xs(data.batch(lambda info: 1 + info.get_batch_num())) == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]]
    joined = ds.zip((data, data.rename(["x", "y"], ["u", "v"]).take(4)))
    assert joined.get_col_names() == ["x", "y", "u", "v"]
    assert joined.get_dataset_size() == 4
    assert data.project(["y", "x"]).get_col_names() == ["y", "x"]
    assert xs(data.take(2).flat_map(lambda x, y: numbers(int(x) + 1, shuffle=False))) == [0, 0, 1]
    assert xs(data.apply(lambda d: d.take(1))) == [0]


def test_map_names_its_columns() -> None:
    data = numbers(3, shuffle=False)
    two = data.map(lambda x: (x, x + 1), ["x"], ["a", "b"])
    assert two.get_col_names() == ["a", "b", "y"]
    assert [row["b"].item() for row in two.create_dict_iterator(num_epochs=1)] == [1, 2, 3]
    assert data.map(lambda x, y: x + y, output_columns=["s"]).get_col_names() == ["s"]
    assert data.map([lambda x: x + 1, lambda x: x * 2]).map(lambda x: x, "x", "z").get_col_names() == ["z", "y"]


def test_sizes_shapes_and_types() -> None:
    data = numbers(10).map(lambda x: np.full((2, 3), x, np.float32), "x").batch(4)
    assert (data.get_dataset_size(), len(data), data.get_batch_size()) == (3, 3, 4)
    assert data.output_shapes() == [[4, 2, 3], [4]]
    assert data.output_types() == [np.float32, np.int64]
    assert data.repeat(2).get_repeat_count() == 2
    assert data.repeat(2).get_dataset_size() == 6
    assert numbers(10).filter(lambda x: x < 3, "x").get_dataset_size() == 3


def test_per_batch_map_and_padding() -> None:
    ragged = ds.GeneratorDataset([np.arange(n) for n in (1, 3, 2)], "x", shuffle=False)
    assert xs(ragged.padded_batch(3)) == [[[0, 0, 0], [0, 1, 2], [0, 1, 0]]]
    assert xs(ragged.padded_batch(3, pad_info={"x": ([2], -1)})) == [[[0, -1], [0, 1], [0, 1]]]
    summed = ragged.batch(2, per_batch_map=lambda rows, info: ([row.sum() + info.batch for row in rows],))
    assert xs(summed) == [[0, 3], [2]]


def test_an_epoch_is_another_order_and_a_seed_fixes_all() -> None:
    ds.config.set_seed(5)
    epochs = list[list[Any]]()
    for _ in range(2):
        iterator = numbers(20).create_dict_iterator(num_epochs=2, output_numpy=True)
        epochs += [[row["x"].item() for row in iterator] for _ in range(2)]
        assert not list(iterator)
    assert epochs[:2] == epochs[2:]
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == list(range(20))


def random_pipeline(workers: int) -> ds.Dataset:
    pictures = ds.NumpySlicesDataset({"x": np.arange(23 * 64, dtype=np.uint8).reshape(23, 8, 8, 1)})
    changed = pictures.map([vision.RandomCrop(6), vision.RandomHorizontalFlip()], "x", num_parallel_workers=workers)
    return changed.shuffle(7).map(vision.RandomErasing(1.0), "x").repeat(2).batch(4).skip(1)


def test_rows_do_not_depend_on_threads_and_a_pass_begins_anywhere() -> None:
    run = EpochRun(seed=3, epoch=1)
    whole = [row[0] for row in random_pipeline(1).rows(run)]
    assert len(whole) == random_pipeline(1).get_dataset_size() == 11
    for workers, start in ((64, 0), (3, 1), (2, 4), (1, 7), (1, 10), (1, 11)):
        found = [row[0] for row in random_pipeline(workers).rows(run, start)]
        assert len(found) == len(whole) - start
        assert all((a == b).all() for a, b in zip(found, whole[start:], strict=True))
    assert any((a != row[0]).any() for a, row in zip(whole, random_pipeline(1).rows(EpochRun(4, 1)), strict=True))


@pytest.mark.parametrize("shuffle", [False, True])
def test_columns_in_batches_are_those_of_the_rows(shuffle: bool) -> None:
    x, names = np.arange(42, dtype=np.float32).reshape(14, 3), np.array(["a", "bc", "def"] * 4 + ["g", "hi"])
    for columns in ({"x": x, "y": np.arange(14)}, {"x": x, "y": names}):
        whole = ds.NumpySlicesDataset(columns, shuffle=shuffle).rename("y", "z").project(["z", "x"])
        for size, drops in ((4, False), (4, True), (5, False), (14, True), (20, False)):
            found = list(whole.batch(size, drops).rows(EpochRun(3)))
            rows = list(whole.rows(EpochRun(3).inside(0)))
            groups = [rows[k : k + size] for k in range(0, 14, size)]
            expected = [group for group in groups if len(group) == size or not drops]
            assert len(found) == len(expected) == whole.batch(size, drops).size()
            for batch, group in zip(found, expected, strict=True):
                for made, values in zip(batch, zip(*group, strict=True), strict=True):
                    np.testing.assert_array_equal(made, np.stack(values), strict=True)


def test_concat_and_zip_begin_anywhere() -> None:
    both = ds.zip((numbers(5) + numbers(3), numbers(8).rename(["x", "y"], ["u", "v"])))
    whole = [tuple(map(float, row)) for row in both.rows(EpochRun(1))]
    for start in range(9):
        assert [tuple(map(float, row)) for row in both.rows(EpochRun(1), start)] == whole[start:]


def test_shards_and_samplers() -> None:
    assert xs(numbers(7, num_shards=3, shard_id=1, shuffle=False)) == [1, 4, 0]
    shards = [xs(d) for d in (numbers(6, num_shards=2, shard_id=k) for k in range(2)) if not ds.config.set_seed(1)]
    assert sorted([*shards[0], *shards[1]]) == list(range(6))
    assert xs(numbers(8, sampler=ds.SequentialSampler(2, 3))) == [2, 3, 4]
    assert xs(numbers(8, sampler=ds.SubsetSampler([5, 1]))) == [5, 1]
    assert sorted(xs(numbers(8, sampler=ds.SubsetRandomSampler([5, 1])))) == [1, 5]
    assert xs(numbers(4, sampler=ds.WeightedRandomSampler([0, 0, 1, 0], 3))) == [2, 2, 2]
    kept = ds.NumpySlicesDataset({"x": np.arange(9), "y": np.arange(9) % 3}, sampler=ds.PKSampler(2, class_column="y"))
    assert xs(kept) == [0, 3, 1, 4, 2, 5]
    assert len(xs(numbers(8, sampler=ds.RandomSampler(True, 12)))) == 12
    assert xs(numbers(8, sampler=[3, 3])) == [3, 3]
    assert xs(numbers(8, num_samples=2, shuffle=False)) == [0, 1]
    child = ds.SequentialSampler(1)
    child.add_child(ds.SubsetSampler([7, 6, 5]))
    assert xs(numbers(8, sampler=child)) == [6, 5]


def test_parts_have_no_row_in_common() -> None:
    first, second = numbers(10).split([0.7, 0.3])
    assert (len(xs(first)), len(xs(second))) == (7, 3)
    for epoch in range(2):
        rows = [{float(r[0]) for r in part.rows(EpochRun(2, epoch))} for part in (first, second)]
        assert rows[0] | rows[1] == set(range(10))


def test_generators_of_every_kind() -> None:
    def generator() -> Iterator[tuple[int, float]]:
        yield from ((k, k / 2) for k in range(4))

    data = ds.GeneratorDataset(generator, ["x", "half"], column_types=[msc.int32, np.float32])
    assert xs(data) == xs(data) == [0, 1, 2, 3]
    assert data.output_types() == [np.int32, np.float32]
    assert data.get_dataset_size() == 4
    assert xs(ds.GeneratorDataset([5, 6], "x", num_samples=1, shuffle=False)) == [5]
    assert xs(ds.GeneratorDataset(generator, ["x", "h"], num_shards=2, shard_id=1)) == [1, 3]


def test_tensors_come_out_and_strings_stay() -> None:
    row = next(ds.NumpySlicesDataset({"t": ["a", "bc"], "n": [1, 2]}, shuffle=False).create_dict_iterator())
    assert isinstance(row["n"], msc.Tensor)
    assert row["n"].item() == 1
    assert row["t"] == "a"
    first = next(numbers(2, shuffle=False).create_tuple_iterator(columns=["y"]))
    assert [type(v) for v in first] == [msc.Tensor]


def test_what_a_function_raises_comes_out_with_the_row() -> None:
    def fails(x: Any) -> Any:
        return 1 / 0 if x == 3 else x

    for workers in (1, 4):
        with pytest.raises(ZeroDivisionError) as error:
            xs(numbers(5, shuffle=False).map(fails, "x", num_parallel_workers=workers))
        assert error.value.__notes__ == ["while map was applied to row 3 of a data set"]


def test_a_thread_ends_when_its_iterator_is_given_up() -> None:
    before = threading.active_count()
    iterator = numbers(1000).map(lambda x: x, "x", num_parallel_workers=3).create_dict_iterator()
    next(iterator)
    iterator.stop()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("wrong", "expected", "words"),
    [
        (lambda d: d.batch(0), "MSC0871", "batch_size is 0; it takes an integer of 1 or more"),
        (lambda d: d.batch("2"), "MSC0871", "batch_size is '2'"),
        (lambda d: d.shuffle(1), "MSC0871", "buffer_size is 1"),
        (lambda d: d.map(3), "MSC0871", "operations is 3"),
        (lambda d: d.map(vision.HWC2CHW), "MSC0871", "write HWC2CHW"),
        (lambda d: d.map(abs, "z"), "MSC0873", "there is no column 'z', but 'x', 'y'"),
        (lambda d: d.map(abs, "x", "y"), "MSC0873", "another column already"),
        (lambda d: xs(d.map(lambda x: (x, x), "x")), "MSC0872", "2 values for the columns 'x'"),
        (lambda d: xs(d.map(lambda x: object(), "x")), "MSC0872", "column 'x' is of type object"),
        (lambda d: d.zip(d), "MSC0873", "'x' is a column of two data sets"),
        (lambda d: d.concat(d.project("x")), "MSC0873", "another 'x'"),
        (lambda d: d.split([1, 2]), "MSC0871", "whose sum is that of the rows, 5"),
        (lambda d: d.repeat(0), "MSC0871", "count is 0"),
        (lambda d: len(d.repeat()), "MSC0871", "repeats without end"),
        (lambda d: d.padded_batch(2, pad_info={"q": ([1], 0)}), "MSC0873", "no column 'q'"),
        (lambda d: numbers(3, shuffle=True, sampler=ds.SequentialSampler()), "MSC0871", "no shuffle"),
        (lambda d: numbers(3, num_shards=2), "MSC0871", "shard_id is None"),
        (lambda d: numbers(3, num_shards=2, shard_id=2), "MSC0871", "below num_shards, which is 2"),
        (lambda d: xs(numbers(3, sampler=[5])), "MSC0871", "asks for row 5, and there are 3"),
        (lambda d: ds.NumpySlicesDataset({"a": [1, 2], "b": [1]}), "MSC0872", "column 'b' 1"),
        (lambda d: xs(ds.GeneratorDataset([(1, 2)], "x")), "MSC0872", "gives 2 values for the columns 'x'"),
        (lambda d: ds.GeneratorDataset(iter([1]), "x", shuffle=True), "MSC0871", "shuffle is True"),
        (lambda d: ds.config.set_seed(-1), "MSC0871", "seed is -1"),
        (lambda d: d.create_dict_iterator(num_epochs=0), "MSC0871", "num_epochs is 0"),
    ],
)
def test_mistakes(wrong: Any, expected: str, words: str) -> None:
    with pytest.raises(msc.MscError) as error:
        wrong(numbers(5, shuffle=False))
    assert code(error) == expected
    assert words in str(error.value)


def test_a_batch_of_unlike_rows_says_which() -> None:
    ragged = ds.GeneratorDataset([np.zeros(n) for n in (2, 2, 3)], "x", shuffle=False)
    with pytest.raises(msc.MscError, match=r"column 'x' has shape \(2,\) .* and shape \(3,\) in row 2"):
        xs(ragged.batch(3))
