"""`try`, `raise`."""

# ruff: noqa


def try_except(x):
    try:
        y = {"a": 1}["b"]
    except KeyError as error:
        y = len(error.args)
    finally:
        z = 5
    return x + y + z


def try_else_finally(x):
    log = []
    try:
        y = x + 1
    except ValueError:
        log.append("except")
    else:
        log.append("else")
    finally:
        log.append("finally")
    return y, log


def try_around_tensor(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        y = x
    except ValueError as error:
        y = x * len(str(error))
    return y


def try_return_finally(x):
    try:
        return x + 1
    finally:
        x = x * 100


def raise_from(x):
    try:
        try:
            raise KeyError("a")
        except KeyError as error:
            raise RuntimeError("b") from error
    except RuntimeError as error:
        return type(error.__cause__).__name__, x
