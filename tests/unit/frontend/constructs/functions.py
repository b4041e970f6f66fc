"""Functions: nested ones, closures, decorators, lambdas, higher order; classes inside."""

# ruff: noqa
import functools
import itertools
from functools import partial, reduce

from tests.unit.frontend.constructs import elsewhere


def nested_function(x):
    def double(v):
        return v * 2

    return double(x) + double(double(x))


def closure(x):
    k = 3

    def scaled(v):
        return v * k

    k = 4
    return scaled(x)


def closure_over_tensor(x, y):
    def add(v):
        return v + y

    y = y * 2
    return add(x)


def nonlocal_variable(x):
    total = x * 0
    calls = 0

    def add(v):
        nonlocal total, calls
        total = total + v
        calls += 1

    add(x)
    add(x * 2)
    return total, calls


def nonlocal_in_branch(x):
    state = x

    def change():
        nonlocal state
        state = state + 1

    if x.sum() > 0:
        change()
    else:
        change()
        change()
    return state


def decorator_on_nested(x):
    def plus_one(f):
        def inner(*args, **kwargs):
            return f(*args, **kwargs) + 1

        return inner

    @plus_one
    def double(v):
        return v * 2

    return double(x)


def decorators_with_arguments(x):
    def plus(n):
        def decorate(f):
            @functools.wraps(f)
            def inner(v):
                return f(v) + n

            return inner

        return decorate

    @plus(1)
    @plus(10)
    def double(v):
        return v * 2

    return double(x), double.__name__


def lambda_value(x):
    f = lambda v: v * 2 + 1
    return f(x)


def lambda_in_call(x):
    return apply(lambda v: v * 3, x) + apply(lambda v: v - 1, x)


def two_lambdas_on_a_line(x):
    f, g = (lambda v: v + 1), (lambda v: v * 2)
    return f(x), g(x), (lambda a, b=2: a * b)(x)


def lambda_with_condition(x):
    f = lambda v: v if v.sum() > 0 else -v
    return f(x)


def apply(f, *args):
    return f(*args)


def higher_order(x):
    def repeat(f, n, v):
        for _ in range(n):
            v = f(v)
        return v

    return repeat(lambda t: t + 1, 3, x)


def compose(x):
    def composed(*functions):
        return lambda v: reduce(lambda a, f: f(a), functions, v)

    return composed(lambda v: v + 1, lambda v: v * 2)(x)


def partial_application(x):
    def affine(v, scale, offset=0):
        return v * scale + offset

    return partial(affine, scale=2)(x), partial(affine, x)(3, offset=1)


def reduce_and_map(x):
    return reduce(lambda a, b: a + b, [x, x * 2, x * 3]), list(map(lambda a, b: a * b, [x, x], [1, 2]))


def varied_arguments(x):
    def f(a, *args, k=1, **kwargs):
        return a * k + len(args) + sum(kwargs.values())

    return f(x), f(x, 1, 2), f(x, k=2, m=3), f(*[x, 1], **{"k": 3, "z": 4})


def positional_only(x):
    def f(a, /, b, *, c):
        return a + b * c

    return f(x, 2, c=3), f(x, b=1, c=1)


def default_arguments(x):
    def f(a, values=[], scale=2):
        values.append(scale)
        return a * len(values)

    return f(x), f(x), f(x, scale=1)


def function_in_branch(x):
    def double(v):
        return v * 2

    def triple(v):
        return v * 3

    return double(x) if x.sum() > 0 else triple(x)


def function_with_early_return(x):
    def clipped(v):
        if v.sum() > 5:
            return v * 0
        return v + 1

    return clipped(x) + clipped(x + 10)


def function_of_other_module(x):
    return elsewhere.scaled(x, 3) + elsewhere.OFFSET


def functions_in_containers(x):
    table = {"add": lambda v: v + 1, "mul": lambda v: v * 2}
    return table["mul"](table["add"](x)), [f(x) for f in table.values()]


def class_inside(x):
    class Scale:
        factor = 2

        def __init__(self, by):
            self.by = by

        def apply(self, v):
            return v * self.by * self.factor

    return Scale(3).apply(x)


def class_with_super(x):
    class Base:
        def __init__(self, k):
            self.k = k

        def value(self, v):
            return v * self.k

    class Derived(Base):
        def __init__(self):
            super().__init__(4)

        def value(self, v):
            return super().value(v) + 1

    return Derived().value(x)


def class_with_private_names(x):
    class Box:
        def __init__(self, v):
            self.__v = v

        def get(self):
            return self.__v + 1

    return Box(x).get()


def context_manager_inside(x):
    class Plus:
        def __enter__(self):
            return 10

        def __exit__(self, *error):
            return True

    with Plus() as ten:
        y = x + ten
    with Plus():
        y = y + 1
        raise ValueError("swallowed")
    return y


def import_inside(x):
    import math
    from math import floor as down

    return x * down(2.5) + math.ceil(0.5)


def generator_function(x):
    def rows():
        for i in range(3):
            yield x * i

    return list(rows()), sum(rows(), x * 0)


def itertools_functions(x):
    pairs = list(itertools.product([1, 2], [3, 4]))
    chained = list(itertools.chain([x], [x + 1]))
    return pairs, chained, list(itertools.accumulate([1, 2, 3]))


def closures_made_in_loop(x):
    functions = []
    for i in range(3):

        def f(v, i=i):
            return v + i

        functions.append(f)
    return [f(x) for f in functions]


def counter_closure(x):
    def counter():
        count = 0

        def step():
            nonlocal count
            count += 1
            return count

        return step

    step = counter()
    return step() + step() + step(), x


def immediately_called(x):
    return (lambda: x + 1)()


def keyword_dictionary(x):
    def f(**options):
        options["more"] = 1
        return options

    given = {"a": x}
    return f(**given), given


def method_as_value(x):
    values = []
    add = values.append
    add(x)
    add(x * 2)
    return values


def sort_key_with_closure(x):
    order = {"a": 2, "b": 1}
    return sorted("ab", key=lambda c: order[c]), x


def assert_in_function(x):
    def checked(v):
        assert v.ndim == 2
        return v

    return checked(x)


def eval_of_constant(x):
    return x * eval("1 + 2")


def star_arguments_of_tensors(x, y):
    def total(*values):
        result = values[0]
        for v in values[1:]:
            result = result + v
        return result

    return total(x, y, x)


def conditional_definition(x):
    if x.ndim == 2:

        def f(v):
            return v * 2
    else:

        def f(v):
            return v

    return f(x)


def annotations(x: object) -> object:
    y: object = x + 1
    z: int
    return y


def docstring(x):
    """Text."""
    ...
    pass
    return x


def closure_over_what_comes_after_a_return(x):
    if x.sum() > 0:
        if x.sum() > 5:
            return x * 2
        x = x - 1
    y = x + 1

    def f(v):
        return v + y

    return f(x)
