"""Python ints that a tensor holds: as keys, and larger than 64 bits. `n` is an int that a tensor holds."""

# ruff: noqa

import numpy as np

from msc import ops


def numbers_of_tensors_as_keys(n):
    k = int(n)
    d = {k: 1, "a": {k + 1}}
    d[k * 2 + 1] = 2
    d.setdefault(k - 50, 5)
    s = {k}
    s.add(k + 1)
    return d, sorted(s), {k * i + i: i for i in range(2)}, {k + i for i in range(2)}


def numbers_of_tensors_as_keys_of_constructors(n):
    k = int(n)
    return dict([(k, 1)]), dict.fromkeys([k], 1), frozenset([k]), set([k]), {3: "a"} | {k: "b"}


def types_of_keys(n):
    return [type(k) for k in {int(n): 1, float(n) + 0.5: 2}]


def large_integers(n):
    k = int(n)
    return k * 10**30, k + 2**70, k < 2**70, 2**64 - k, k == 2**63


def divmod_and_reflected_shifts(n):
    return divmod(n, 3), divmod(7, n + 10), 1 << abs(n), 100 >> abs(n)


def tensor_full_of_number(n):
    return np.full((2,), int(n)) if isinstance(n, np.ndarray) else ops.full((2,), int(n))
