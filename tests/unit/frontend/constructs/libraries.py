"""What libraries look at: annotations of functions, and elements of tensors. `x` is 2x3."""

# ruff: noqa

import numpy as np


def annotations_of_nested_function(x):
    def f(a: int, *, b: "text" = 1, **rest: float) -> list:
        return a

    return f.__annotations__, f(x)


def single_dispatch(x):
    import functools

    @functools.singledispatch
    def f(a):
        return 0

    @f.register
    def _(a: int):
        return a + 1

    return f(3), f("s"), x


def reductions_of_numpy(x):
    return np.sum(x), np.mean(x, axis=0), np.vstack([x, x]), np.clip(x, 0, 1)
