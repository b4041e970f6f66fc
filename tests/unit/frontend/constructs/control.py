"""Control flow: each function is a construct, run on several arguments in every mode. `x` and `y` are 2x3, `v` is 4,
`n` and `k` are ints that a tensor holds."""

# ruff: noqa


def if_else(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def if_without_else(x):
    y = x
    if x.sum() > 0:
        y = y + 10
    return y


def if_elif_else(x):
    if x.sum() > 5:
        y = x * 2
    elif x.sum() > 0:
        y = x * 3
    else:
        y = x * 4
    return y + 1


def nested_if(x, y):
    if x.sum() > 0:
        if y.sum() > 0:
            z = x + y
        else:
            z = x - y
        z = z * 2
    else:
        z = y
    return z


def early_return(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def early_return_twice(x):
    if x.sum() > 5:
        return x * 2
    if x.sum() > 0:
        return x * 3
    return x


def early_return_nested(x, y):
    z = x + y
    if x.sum() > 0:
        if y.sum() > 0:
            return z * 2
        z = z + 1
    else:
        z = z - 1
    z = z * 3
    return z


def return_in_both(x):
    if x.sum() > 0:
        return x
    else:
        return -x


def return_none_or_tensor(x):
    if x.sum() > 0:
        return x


def number_chosen(x):
    if x.sum() > 0:
        k = 1
    else:
        k = 2
    return x * k, k


def float_chosen(x):
    scale = 0.5 if x.sum() > 0 else 2.0
    return x * scale, scale


def string_chosen(x):
    if x.sum() > 0:
        name = "positive"
    else:
        name = "negative"
    return name


def number_or_tensor(x):
    loss = 0
    if x.sum() > 0:
        loss = loss + x.sum()
    return loss


def different_shapes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.sum()
    return y * 2


def bound_in_one_branch_and_dead(x):
    if x.sum() > 0:
        t = x * 2
        y = t + 1
    else:
        y = x
    return y


def bound_in_one_branch_and_read_in_it(x):
    if x.sum() > 0:
        t = x * 2
    y = x + 1
    if x.sum() > 0:
        y = y + t
    return y


def ternary(x):
    return x * 2 if x.sum() > 0 else x - 1


def ternary_nested(x):
    return x if x.sum() > 5 else (x * 2 if x.sum() > 0 else x * 3)


def chained_comparison(x):
    if 0 < x.sum() < 100:
        return x + 1
    return x


def chained_comparison_value(x):
    y = x.sum()
    return 0 < y < 10 < 20


def and_or_not(x, y):
    if x.sum() > 0 and y.sum() > 0:
        return x + y
    if x.sum() > 0 or not y.sum() > 0:
        return x - y
    return x * y


def and_returns_operand(x):
    y = x.sum() and x.max()
    return y


def or_returns_operand(x):
    z = (x * 0).sum() or x.max()
    return z


def in_list(n):
    return n in [1, 2, 3]


def in_tensor(x):
    if 4 in x:
        return x + 1
    return x


def not_in(n, x):
    if n not in (0, 3):
        x = x + 1
    return x


def is_none(x):
    y = None
    if y is None:
        y = x
    return y is not None, y


def match_value(x):
    kind = "b"
    match kind:
        case "a":
            return x
        case "b" | "c":
            return x + 1
        case _:
            return x + 2


def match_structure(x):
    match (x, [1, 2, 3]):
        case (t, [1, *rest]) if len(rest) == 2:
            return t * len(rest)
        case _:
            return x


def match_on_tensor(x, n):
    match n:
        case 0:
            return x
        case 3:
            return x * 3
        case _:
            return x - 1


def match_mapping_and_class(x):
    match {"op": "add", "by": 2, "more": 1}:
        case {"op": "add", "by": int(by), **rest}:
            return x + by + len(rest)
    return x


def raise_not_taken(x):
    if x.shape[0] > 100:
        raise ValueError("too large")
    return x + 1


def assertion(x):
    assert x.shape == (2, 3), f"shape {x.shape}"
    return x


def assertion_on_tensor(x):
    assert (x * x).sum() >= 0, "impossible"
    return x


def swap_in_branch(x, y):
    if x.sum() > y.sum():
        x, y = y, x
    return x, y


def branch_in_loop(x):
    for _ in range(3):
        if x.sum() > 10:
            x = x - 3
        else:
            x = x + 4
    return x


def recursion_on_constants(x):
    def power(n):
        return x if n == 0 else power(n - 1) * 2

    return power(3)


def tail_recursion(x, n):
    def step(y, m):
        if m <= 0:
            return y
        return step(y * 2, m - 1)

    return step(x, n)


def tail_recursion_with_ternary(x, n):
    def step(y, m):
        return y if m <= 0 else step(y + m, m - 1)

    return step(x, n)


def recursion_on_tensors(x, n):
    def total(m):
        if m <= 0:
            return x
        return total(m - 1) + m

    return total(n)


def mutual_recursion(x):
    def even(n, y):
        return y if n == 0 else odd(n - 1, y + 1)

    def odd(n, y):
        return y * 100 if n == 0 else even(n - 1, y * 2)

    return even(4, x), odd(3, x)
