"""Samplers: which rows of an indexed data set are read, in which order."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from msc.dataset.arguments import count, optional_count, refuse, shards

Indices: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = Callable[[str | None], NDArray[Any]]
"""The classes of all rows, by the name of a column."""


class Sampler:
    """Base. `order` gives the places of rows; a subclass of a user's may define `__iter__` instead.

    `num_samples` is how many there are at most. A child sampler chooses first: this one samples what it gives.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        self.num_samples = optional_count("num_samples", num_samples)
        self.child: Sampler | None = None

    def add_child(self, sampler: Sampler) -> None:
        """Have another sampler choose the rows that this one samples."""
        self.child = sampler

    def chosen(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        """The places of rows out of `total`."""
        if self.child is None:
            return self._limited(self.order(total, draws, labels))
        first = self.child.chosen(total, draws, labels)
        return first[self._limited(self.order(len(first), draws, lambda name: labels(name)[first]))]

    def _limited(self, order: Indices) -> Indices:
        return order if self.num_samples is None else order[: self.num_samples]

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        """The places, before `num_samples` cuts them."""
        del total, draws, labels
        return np.asarray(list(cast("Iterable[int]", self)), np.int64)


class SequentialSampler(Sampler):
    """Rows in order, from `start_index` on."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start = 0 if start_index is None else count("start_index", start_index, 0)

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        return np.arange(min(self.start, total), total)


class RandomSampler(Sampler):
    """Rows in a random order, another one each epoch; with `replacement` each is drawn from all of them."""

    def __init__(self, replacement: bool = False, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.replacement = bool(replacement)

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        if self.replacement:
            return draws.integers(0, max(total, 1), (self.num_samples or total) if total else 0)
        return draws.permutation(total)


class SubsetSampler(Sampler):
    """Rows at given places."""

    def __init__(self, indices: Sequence[int] | int, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        given = np.atleast_1d(np.asarray(indices))
        if given.ndim != 1 or not (np.issubdtype(given.dtype, np.integer) or not given.size):
            refuse("indices", indices, "a list of integers", is_type=True)
        self.indices = given.astype(np.int64)

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        return self.indices


class SubsetRandomSampler(SubsetSampler):
    """Rows at given places, in a random order."""

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        return draws.permutation(self.indices)


class WeightedRandomSampler(Sampler):
    """Rows 0 to len(weights) - 1, drawn with probabilities in proportion to weights."""

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        given = np.asarray(weights, np.float64)
        if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (given < 0).any() or not given.sum():
            refuse("weights", weights, "a list of numbers from 0 on, not all of them 0")
        self.weights = given / given.sum()
        self.replacement = bool(replacement)
        drawable = int((given > 0).sum())
        if not self.replacement and (self.num_samples or 0) > drawable:
            refuse("num_samples", self.num_samples, f"at most {drawable}, as many as have a weight above 0")

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        drawable = len(self.weights) if self.replacement else int((self.weights > 0).sum())
        return draws.choice(len(self.weights), self.num_samples or drawable, self.replacement, self.weights)


class DistributedSampler(Sampler):
    """Every `num_shards`-th row from `shard_id` on; all shards have as many rows, the first ones fill up the last."""

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None, offset: int = -1
    ) -> None:
        super().__init__(num_samples)
        found = shards(num_shards, shard_id)
        assert found is not None
        self.num_shards, self.shard_id = found
        self.shuffle = bool(shuffle)
        self.offset = count("offset", offset, -1)

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        order = draws.permutation(total) if self.shuffle else np.arange(total)
        size = -(-total // self.num_shards)
        places = np.arange(size) * self.num_shards + (self.shard_id - max(self.offset, 0)) % self.num_shards
        return order[places % max(total, 1)]


class PKSampler(Sampler):
    """`num_val` rows of each class, or of `num_class` classes."""

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        super().__init__(num_samples)
        self.num_val = count("num_val", num_val)
        self.num_class = optional_count("num_class", num_class)
        self.shuffle = bool(shuffle)
        self.class_column = class_column

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        found = labels(self.class_column).reshape(-1)
        chosen: list[Indices] = []
        for number in np.unique(found)[: self.num_class]:
            places = np.flatnonzero(found == number)
            if len(places) < self.num_val:
                refuse("num_val", self.num_val, f"at most {len(places)}: class {number} has no more rows")
            chosen.append((draws.permutation(places) if self.shuffle else places)[: self.num_val])
        return np.concatenate(chosen)


class _Listed(Sampler):
    """The places that an iterable of a user's gives, taken anew each epoch."""

    def __init__(self, places: Iterable[int], num_samples: int | None) -> None:
        super().__init__(num_samples)
        self._places = places

    def order(self, total: int, draws: np.random.Generator, labels: Labels) -> Indices:
        return np.asarray(list(self._places), np.int64)


def sampler_of(
    sampler: Any, shuffle: bool | None, num_samples: int | None, sharding: tuple[int, int] | None, default: bool
) -> Sampler:
    """The sampler that the arguments of a data set mean; `default` is whether it shuffles where none says."""
    if sampler is not None:
        if shuffle is not None or sharding is not None:
            refuse("sampler", sampler, "no shuffle and no num_shards beside it: the sampler says the order")
        if isinstance(sampler, Sampler):
            if num_samples is None:
                return sampler
            limited = SequentialSampler(num_samples=num_samples)
            limited.add_child(sampler)
            return limited
        if isinstance(sampler, Iterable):
            return _Listed(cast("Iterable[int]", sampler), num_samples)
        refuse("sampler", sampler, "a sampler or an iterable of places", is_type=True)
    shuffled = default if shuffle is None else shuffle
    if sharding is not None:
        return DistributedSampler(*sharding, shuffle=shuffled, num_samples=num_samples)
    return RandomSampler(num_samples=num_samples) if shuffled else SequentialSampler(num_samples=num_samples)
