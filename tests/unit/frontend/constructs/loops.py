"""Loops."""

# ruff: noqa


def while_tensor(x):
    while x.sum() < 100:
        x = abs(x) * 2 + 1
    return x


def while_counting(x):
    i = 0
    while x.sum() < 50:
        x = abs(x) + 1
        i += 1
    return x, i


def while_counter_against_tensor(x, n):
    i = 0
    while i < n:
        x = x + i
        i = i + 1
    return x


def while_python(x):
    i = 0
    while i < 3:
        x = x + i
        i += 1
    return x


def while_with_break(x):
    i = 0
    while i < 10:
        x = x + 1
        if x.sum() > 20:
            break
        i += 1
    return x, i


def while_true_break(x):
    while True:
        x = x + 1
        if x.sum() > 20:
            break
    return x


def while_true_return(x):
    count = 0
    while True:
        x = x + 1
        count += 1
        if x.sum() > 20:
            return x, count


def while_with_continue(x, n):
    i = 0
    total = x
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        total = total + i
    return total


def while_else(x):
    i = 0
    while x.sum() < 30:
        x = abs(x) + 1
        i += 1
        if i > 5:
            break
    else:
        x = x * 100
    return x


def while_two_conditions(x, n):
    i = 0
    while i < n and x.sum() < 40:
        x = abs(x) + 1
        i += 1
    return x, i


def nested_while(x, n):
    i = 0
    while i < n:
        j = 0
        while j < i:
            x = x + 1
            j += 1
        i += 1
    return x


def while_return_inside(x, n):
    i = 0
    while i < n:
        x = x + 1
        if x.sum() > 10:
            return x * 100
        i += 1
    return x


def while_changing_shape(x, n):
    out = x
    i = 0
    while i < n:
        out = out.reshape(-1)
        i += 1
    return out


def for_range(x):
    for i in range(3):
        x = x * 2 + i
    return x


def for_range_of_tensor(x, n):
    for i in range(n):
        x = x + i
    return x


def for_range_with_bounds(x, n):
    for i in range(1, n, 2):
        x = x + i
    return x


def for_range_backwards(x, n):
    for i in range(n, 0, -1):
        x = x * 2 + i
    return x


def for_else(x):
    for i in range(3):
        if i == 5:
            break
    else:
        x = x + 100
    return x


def for_break_on_tensor(x):
    for i in range(5):
        if x.sum() > 20:
            break
        x = x + 2
    else:
        x = x * 1000
    return x


def for_continue_on_tensor(x):
    total = x * 0
    for i in range(4):
        if (x + i).sum() > 10:
            continue
        total = total + i
    return total


def for_return_on_tensor(x):
    for i in range(5):
        x = x + 1
        if x.sum() > 10:
            return x, i
    return x, -1


def for_tensor_rows(x):
    total = 0
    for row in x:
        total = total + row.sum()
    return total


def for_list_of_tensors(x, y):
    total = x * 0
    for item in [x, y, x * 2]:
        total = total + item
    return total


def for_enumerate(x):
    for i, row in enumerate(x):
        x = x + row * i
    return x


def for_zip(x, y):
    total = 0
    for a, b in zip(x, y):
        total = total + (a * b).sum()
    return total


def for_reversed(x):
    for i in reversed(range(3)):
        x = x * 2 + i
    return x


def for_dict_items(x):
    for name, value in {"a": 1, "b": 2}.items():
        x = x + value * len(name)
    return x


def for_nested_with_break(x):
    for i in range(3):
        for j in range(3):
            if j == 2:
                break
            x = x + i * j
    return x


def for_variable_after(x):
    for i in range(3):
        x = x + i
    return x * i


def for_else_binds_on_both_ends(v):
    for t in v:
        if t > 2:
            found = t * 10
            break
    else:
        found = v.sum() - 100
    return found


def for_else_with_continue(v):
    for t in v:
        if t < 0:
            continue
        double = t * 2
        if double > 3:
            hit = double
            break
    else:
        hit = v[0]
    return hit + 1


def while_else_binds_on_both_ends(n):
    i = 0
    while i < 4:
        if i == n:
            found = i * 10
            break
        i += 1
    else:
        found = -1
    return found


def nested_for_else_binds(v):
    out = v[0]
    for a in v:
        for b in v:
            if a * b > 3:
                m = a - b
                break
        else:
            m = a + b
        out = out + m
    return out


def break_with_another_type(x):
    for i in range(3):
        if x.sum() > i:
            r = x
            break
        r = 2.0
    return r
