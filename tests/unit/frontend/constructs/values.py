"""Values: assignment, containers, indexing, text, builtins."""

# ruff: noqa
import math
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field, replace

import numpy as np

Point = namedtuple("Point", ["a", "b"])
SCALES = {"double": 2, "triple": 3}
OFFSETS = [1, 2, 3]


@dataclass
class Pair:
    first: object
    second: int = 3


@dataclass(frozen=True)
class Config:
    width: int
    names: tuple = ("a",)


class Counter:
    def __init__(self, start):
        self.count = start

    def step(self, by=1):
        self.count = self.count + by
        return self

    @property
    def doubled(self):
        return self.count * 2

    @staticmethod
    def triple(v):
        return v * 3

    @classmethod
    def make(cls):
        return cls(5)

    def __len__(self):
        return 4

    def __call__(self, v):
        return v + self.count

    def __getitem__(self, i):
        return i * 10

    def __enter__(self):
        self.count += 100
        return self

    def __exit__(self, *error):
        self.count -= 50
        return False


def alias_and_add(x):
    y = x
    y += 1
    return y - x, x


def augmented_operators(x):
    y = x + 0
    y *= 3
    y -= 1
    y /= 2
    return y


def unpacking(x, y):
    a, b = x, y
    (c, d), e = (a, b), x
    first, *rest = [1, 2, 3, 4]
    *init, last = (5, 6, 7)
    return c + d + e, first, rest, init, last


def chained_assignment(x):
    a = b = x + 1
    a = a * 2
    return a, b


def swap(x, y):
    x, y = y, x
    return x - y


def list_mutation(x):
    values = [x]
    values.append(x + 1)
    values.insert(0, x * 2)
    values.extend([x, x - 1])
    values.reverse()
    values.pop()
    del values[0]
    return len(values), values


def list_of_numbers(x):
    values = [3, 1, 2]
    values.sort()
    values[1] = 7
    values += [9]
    return values, x * values[0], values.index(7), values.count(9)


def list_in_branch(x):
    values = [x]
    if x.sum() > 0:
        values.append(x * 2)
        values.append(x * 3)
    else:
        values.append(x * 4)
        values.append(x * 5)
    return values


def list_in_branch_of_different_lengths(x):
    values = [x]
    if x.sum() > 0:
        values.append(x * 2)
    return values


def list_alias_in_branch(x):
    values = [x]
    other = values
    if x.sum() > 0:
        values[0] = x * 2
    return other


def dict_mutation(x):
    table = {"a": x, "b": x + 1}
    table["c"] = x * 2
    table.update(d=x * 3)
    del table["a"]
    popped = table.pop("b")
    table.setdefault("e", 4)
    return table, popped, sorted(table), table.get("zz", 5)


def dict_in_branch(x):
    table = {"a": x}
    if x.sum() > 0:
        table["a"] = x * 2
    return table


def dict_comprehension(x):
    return {k: x * v for k, v in SCALES.items()}


def set_literal(x):
    return x * len({1, 2, 2, 3}), {1, 2} | {3}


def list_comprehension(x):
    return [x * i for i in range(3) if i != 1]


def nested_comprehension(x):
    return [[i * j for j in range(i)] for i in range(3)], sum(x.sum() * i for i in range(2))


def comprehension_scope(x):
    i = 10
    values = [i for i in range(3)]
    return i, values, x


def comprehension_of_lambdas(x):
    functions = [lambda v, i=i: v * i for i in range(3)]
    late = [lambda v: v + i for i in range(3)]
    return [f(x) for f in functions], [f(x) for f in late]


def generator_expression(x):
    return sum(row.sum() for row in x), any(i > 1 for i in range(3)), max(i * i for i in range(3))


def walrus(x):
    if (total := x.sum()) > 0:
        return total + 1
    return total


def walrus_in_comprehension(x):
    values = [y := i * 2 for i in range(3)]
    return values, y, x


def walrus_in_while(x):
    while (total := x.sum()) < 50:
        x = abs(x) + total * 0 + 1
    return x, total


def delete_variable(x):
    y = x + 1
    z = y
    del y
    return z


def named_tuple(x):
    p = Point(x, b=2)
    q = p._replace(b=3)
    return p, q.a * q.b, p[0]


def named_tuple_in_branch(x):
    p = Point(x, 1)
    if x.sum() > 0:
        p = Point(x * 2, 2)
    return p


def data_class(x):
    pair = Pair(x)
    pair.second += 1
    pair.first = pair.first * pair.second
    return pair, replace(pair, second=9).second


def data_class_in_branch(x):
    if x.sum() > 0:
        pair = Pair(x, 1)
    else:
        pair = Pair(-x, 2)
    return pair.first * pair.second


def user_object(x):
    counter = Counter(1)
    counter.step().step(by=3)
    return (
        x + counter.count,
        counter.doubled,
        Counter.triple(2),
        Counter.make().count,
        len(counter),
        counter[3],
        counter(x),
    )


def user_object_in_branch(x):
    counter = Counter(0)
    if x.sum() > 0:
        counter.step()
    else:
        counter.step(2)
    return x * counter.count


def user_object_returned(x):
    return Counter(x).step().count


def with_statement(x):
    counter = Counter(1)
    with counter as inner:
        y = x + inner.count
    return y, counter.count


def attributes_by_name(x):
    counter = Counter(2)
    setattr(counter, "extra", x)
    has = hasattr(counter, "extra"), hasattr(counter, "nothing")
    return getattr(counter, "extra") + getattr(counter, "nothing", 4), has


def string_methods(x):
    name = "-".join(["a", "B"]).lower().replace("a", "c")
    return name.split("-"), name.upper(), name.startswith("c"), x


def format_strings(x):
    a, b = 3, 2.5
    return f"{a:>4}|{b:.2f}|{'s'!r}|{a=}", "%d %s" % (a, "t"), "{} {k}".format(1, k=2), x.shape


def format_of_tensor(n):
    return f"n is {n}"


def numpy_constants(x):
    table = np.arange(3) * 2
    return x * float(table[1]) + math.pi


def module_constants(x):
    return x * SCALES["triple"] + OFFSETS[-1] + len(OFFSETS)


def enumerate_zip_map_filter(x):
    doubled = list(map(lambda i: i * 2, range(4)))
    odd = list(filter(lambda i: i % 2, range(6)))
    pairs = list(zip("ab", [x, x + 1]))
    return doubled, odd, pairs, list(enumerate("xy", 1))


def sorted_and_reversed(x):
    words = sorted(["bb", "a", "ccc"], key=lambda w: -len(w))
    return words, list(reversed([1, 2])), sorted([3, 1], reverse=True), x


def min_max_sum(x, n):
    return min(3, 1, 2), max([4, 9]), sum([1, 2], 3), max(n, 2), min(x.sum(), x.max())


def any_all(x, v):
    return any([x.sum() > 0, v.sum() > 100]), all([x.sum() > 0, True]), any([]), all([])


def round_divmod_pow(x):
    return round(3.7), divmod(7, 2), pow(2, 3), abs(-3), int("4"), float("1.5"), bool([]), x


def number_of_tensor(x, n):
    return int(n) + 1, float(x.sum()) * 2, bool(x.sum() > 0), n.item() * 2


def type_and_isinstance(x):
    return type(3) is int, isinstance(2, (int, str)), isinstance(x, list), type([]).__name__


def bitwise(n):
    return n & 1, n | 4, 6 ^ 3, 1 << 3, ~2


def matrix_product(x, y):
    return x @ y.T, (x * y).sum(0)


def powers(x):
    return x**2, 2 ** (x * 0 + 1), -x, +x


def ordered_and_default_dict(x):
    table = OrderedDict(a=1)
    table["b"] = x
    groups = defaultdict(list)
    groups["k"].append(3)
    return dict(table), dict(groups), x


def frozen_config(x):
    config = Config(width=x.shape[1])
    return x * config.width, config.names[0]


def nested_results(x):
    return {"a": (x, [x + 1, None]), "b": "text", 3: {"deep": (1.5, True)}}


def tuple_arithmetic(x):
    return (1, 2) + (3,), [0] * 3, (1, 2) * 2, (1, 2) < (1, 3), x


def none_result(x):
    y = x + 1


def star_in_display(x):
    values = [*range(3), *[7]]
    table = {**SCALES, "more": 1}
    return (*values, x), table


def slices_as_objects(v):
    part = slice(1, 3)
    return v[part], [1, 2, 3, 4][part]


def global_of_module(x):
    return x + len(__name__) * 0
