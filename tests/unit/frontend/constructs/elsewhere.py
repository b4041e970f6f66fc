"""A module that constructs call."""

OFFSET = 7


def scaled(v, k):
    if v.sum() > 0:
        return v * k
    return v - k
