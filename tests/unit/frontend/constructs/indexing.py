"""Indexing and item assignment."""

# ruff: noqa


def slicing(x, v):
    return x[0], x[:, 1], x[..., -1], x[0:2, 1:3], v[::2], v[1:-1]


def negative_step(v):
    return v[::-1], v[3:0:-2]


def new_axis(x):
    return x[None], x[:, None, :].shape


def index_by_list(x, v):
    return v[[0, 2]], x[[1, 0]]


def index_by_mask(v):
    w = v * 1
    w[w > 1] = 0
    return w


def item_assignment(x):
    y = x * 1
    y[0] = 5
    y[1, 2] = 7
    y[:, 0] = y[:, 1]
    return y


def item_assignment_seen_by_alias(x):
    y = x * 1
    z = y
    y[0] = 0
    return z, y


def item_assignment_augmented(x):
    y = x * 1
    y[0] += 2
    y[:, 1] *= 3
    return y


def item_assignment_to_argument(x):
    x[0] = 9
    return x + 1


def item_assignment_in_branch(x):
    y = x * 1
    if x.sum() > 0:
        y[0] = 100
    else:
        y[1] = 200
    return y


def item_assignment_in_loop(x, n):
    y = x * 1
    for i in range(2):
        y[i] = y[i] + i
    return y


def index_by_tensor(v, n):
    return v[n % 4]


def index_by_loop_counter(v, n):
    total = v[0] * 0
    for i in range(n):
        total = total + v[i % 4]
    return total


def shapes(x):
    rows, columns = x.shape
    return x.reshape(columns, rows), x.shape, x.ndim, len(x), x.size


def masks(x, v):
    y = x * 1
    y[y > 2] = 0
    y[y < 0] = y[0, 0] * 0 + 9
    y[v[:2] > 0] = 7
    y[v[:2] > 0] += 1
    return y


def bool_as_index(x):
    return x[True], x[False], x[None, True]
