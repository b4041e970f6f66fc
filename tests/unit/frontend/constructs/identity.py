"""Which tensor a name refers to, when items are assigned: aliases made by branches, loops and calls. `x` is 2x3."""

# ruff: noqa


def alias_on_one_path(x):
    a = x * 1
    b = a
    for i in range(3):
        if x.sum() > i:
            a = a + 1
        else:
            a[0] = i
    return a, b


def argument_or_copy_returned(x):
    def f(t):
        if t.sum() > 0:
            t[0] = 5
            return t
        u = t * 1
        u[1] = 5
        return u

    z = x * 1
    r = f(z)
    r[0, 0] = -1
    return z, r


def item_of_list_rebound_in_loop(x, n):
    held = [x * 1]
    first = held[0]
    while n > 0:
        held[0][0] = n
        held[0] = held[0] + 1
        n = n - 1
    return held[0], first


def truth_that_is_compared(x):
    b = bool(x.sum() > 0)
    return b is True, b is not False, b is None, -b


def new_tensor_in_two_places(x):
    held = []
    if x.sum() > 0:
        t = x + 1
        held.append(t)
    else:
        t = x + 2
        held.append(t)
    t[0] = 7
    return t, held[0]
