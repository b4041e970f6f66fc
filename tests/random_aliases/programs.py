"""A Cell that makes tensors of others and writes into any of them; both modes must leave the same values everywhere.

An origin is an argument, a Parameter, an attribute, an item of a list or a dictionary, a global or a variable of an
outer function. PyNative mode is the oracle: of results, of what every origin holds after each call, and of who is who.
"""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np

import msc
from msc import Parameter, Tensor, nn, ops

ORIGINS = {
    "x": "x",
    "item": "xs[0]",
    "entry": 'xd["k"]',
    "weight": "self.weight",
    "state": "self.state",
    "listed": "self.listed[1]",
    "named": 'self.named["k"]',
    "got": 'self.named.get("k")',
    "picked": "self.listed[1:][0]",
    "valued": "[*self.named.values()][0]",
    "copied": "self.listed.copy()[-1]",
    "gotten": 'getattr(self, "state")',
    "pair": "self.pair[1]",
    "next": "next(iter(self.pair))",
    "GLOBAL": "GLOBAL",
    "outer": "outer",
}
"""Where a tensor comes from, and the expression that reads it."""

FULL = [
    *("{0}[:]", "{0}[...]", "{0}[()]", "{0}[0:]", "{0}[:2]", "{0}[0:2]", "{0}[::1]", "{0}[-2:]", "{0}[:, :]"),
    *("{0}[..., :]", "{0}[:, ...]", "{0}[0:9]", "{0}[:, 0:3]", "{0}[slice(None)]", "{0}[:, :, ...]", "{0}[:][:]"),
    *("{0}[0:{0}.shape[0]]", "{0}[slice(0, 2), :]", "{0}[[0, 1]]", "{0}[Tensor([0, 1])]", "{0}[None][0]"),
]
COPIES = [
    *("{0}.copy()", "{0} + 0", "{0} * 1", "+{0}", "-(-{0})", "ops.relu({0}) - ops.relu(-{0})", "{0}[::-1][::-1]"),
    *(
        "ops.concat([{0}])",
        "ops.stack([{0}])[0]",
        "ops.concat([{0}[:1], {0}[1:]])",
        "ops.select({0} > 9, {0} * 0, {0})",
    ),
    *("ops.tile({0}, (1, 1))", "ops.clamp({0}, -1e9, 1e9)", "ops.stop_gradient({0})", "ops.maximum({0}, {0})"),
    *("ops.gather({0}, Tensor([0, 1]), 0)", "ops.pad({0}, (0, 0))", "ops.roll({0}, 0, 0)", "ops.flip({0}, (0,))[::-1]"),
    *(
        "{0}.astype(msc.float64).astype(msc.float32)",
        "{0} if True else 0",
        "({0}, 1)[0]",
        "[{0}][0]",
        '{{"a": {0}}}["a"]',
    ),
    *(
        "Tensor({0}.asnumpy() * 1)",
        "{0}.value()",
        "{0}.detach()",
        "{0}.contiguous()",
        "ops.where({0} > -99, {0}, 0)",
        "ops.sort({0})[0] * 0 + {0}",
    ),
]
SAME = [
    *(
        "{0}",
        "{0}.reshape(2, 3)",
        "{0}.reshape({0}.shape)",
        "{0}.view(2, 3)",
        "{0}.reshape(6).reshape(2, 3)",
        "{0}.T.T",
    ),
    *(
        "{0}.astype(msc.float32)",
        "{0}.float()",
        "{0}.to(msc.float32)",
        "{0}.squeeze()",
        "{0}.expand_dims(0).squeeze(0)",
    ),
    *(
        "{0}.broadcast_to((2, 3))",
        "{0}.expand_as({0})",
        "ops.transpose({0}, (0, 1))",
        "{0}.permute(0, 1)",
        "ops.cast({0}, msc.float32)",
    ),
    *("{0}.flatten().reshape(2, 3)", "ops.squeeze({0})", "ops.reshape({0}, (2, -1))", "ops.broadcast_to({0}, (2, 3))"),
    *(
        "ops.identity({0})",
        "{0}.swapaxes(0, 1).swapaxes(0, 1)",
        "{0}.narrow(0, 0, 2)",
        "ops.split({0}, 2)[0]",
        "ops.chunk({0}, 1)[0]",
    ),
    *("passed({0})", "twice({0})[1]", "(lambda t: t)({0})", "max([{0}], key=len)", "self.child({0})"),
]
WRITES = [
    *("{0}[0] = {1}", "{0}[:] = {1}", "{0}[...] = {1}", "{0}[0, 1] = {1}", "{0}[:, 0] = {1}", "{0}[-1] += {1}"),
    *("{0}[Tensor([0])] = {1}", "{0}[{0} > 1] = {1}", "{0} += {1}", "{0} *= {1}", "{0} -= {0}[0]", "{0}[1] = {0}[0]"),
    *(
        "{0}.add_({1})",
        "{0}.mul_({1})",
        "{0}.fill_({1})",
        "{0}.copy_({0} + {1})",
        "{0}.zero_()",
        "{0}.assign_value({0} * {1})",
    ),
    *("{0}[0], {0}[1] = {0}[1], {0}[0]", "written({0}, {1})", "{0}[:] = {0}[::-1]", "{0}[0:1] *= {1}"),
]
ASSIGNMENTS = [
    *(
        "self.weight[0] = {1}",
        "self.weight.set_data({0} * {1})",
        "ops.assign(self.weight, {0} + {1})",
        "self.state = {0}",
    ),
    *("self.listed[1] = {0}", 'self.named["k"] = {0}', "xs[0] = {0}", "ops.assign_add(self.weight, {0})"),
]
BLOCKS = [
    *(
        "if FLAG:",
        "if {0}.sum() > 0:",
        "if {0}.shape[0] == 2:",
        "for _ in range(2):",
        "for _ in range(n):",
        "while {0}.sum() < {1}:",
    ),
    *("with nothing():", "try:", "if {0}[0, 0] > 0 and FLAG:"),
]

HEAD = """
import contextlib

FLAG = True
GLOBAL = Tensor(start(7))

@contextlib.contextmanager
def nothing():
    yield

def passed(t):
    return t

def twice(t):
    return t, t

def written(t, v):
    t[1] = v
    return None

class Child(Cell):
    def construct(self, t):
        return t

def make():
    outer = Tensor(start(8))

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor(start(3)), name="weight")
            self.state = Tensor(start(4))
            self.listed = [1, Tensor(start(5))]
            self.named = {"k": Tensor(start(6))}
            self.pair = (Tensor(start(9)), Tensor(start(10)))
            self.child = Child()

        def construct(self, x, xs, xd, n):
"""


REFUSALS = (msc.MscError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What both modes may raise, and then alike."""


class Difference(AssertionError):
    """A program whose modes differ."""


def start(number: int) -> Any:
    """The values that an origin has at first."""
    return np.arange(6, dtype=np.float32).reshape(2, 3) - 2 + number / 4


class Program:
    """The text of a program. `graph` is whether it must become one graph without a split, as far as one can tell."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.names = [ORIGINS[k] for k in self.draw.sample(list(ORIGINS), 2)]
        self.lines: list[str] = []
        self._made = 0
        for _ in range(self.draw.randint(1, 2)):
            self._make(12)
        for _ in range(self.draw.randint(1, 3)):
            self._statement(12)
        locals_ = [name for name in self.names if name.isidentifier()]
        results = ", ".join([*locals_, *(f"{name} * 1" for name in self.names)])
        self.lines.append(f"            return {results},")
        self.text = HEAD + "\n".join(self.lines) + "\n    return Net(), outer\n"

    def _make(self, depth: int) -> None:
        self._made += 1
        kind = self.draw.choice([FULL, COPIES, SAME])
        name, source = f"a{self._made}", self.draw.choice(self.names)
        self._line(depth, f"{name} = {self.draw.choice(kind).format(source)}")
        self.names.append(name)

    def _line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def _statement(self, depth: int) -> None:
        draw = self.draw.random()
        target = self.draw.choice(self.names)
        value = self.draw.choice(["3", "0.5", "-1", self.draw.choice(self.names)])
        if draw < 0.2 and depth < 24:
            block = self.draw.choice(BLOCKS).format(target, self.draw.choice(["-9", "4"]))
            self._line(depth, block)
            for _ in range(self.draw.randint(1, 2)):
                self._write(depth + 4, self.draw.choice(self.names), value)
            if block.startswith("while"):
                self._line(depth + 4, "break" if self.draw.random() < 0.5 else f"{target}.add_(3)")
            if block == "try:":
                self._line(depth, "finally:")
                self._write(depth + 4, self.draw.choice(self.names), value)
        elif draw < 0.35:
            self._line(depth, self.draw.choice(ASSIGNMENTS).format(target, value))
        elif draw < 0.45:
            self._make(depth)
        else:
            self._write(depth, target, value)

    def _write(self, depth: int, target: str, value: str) -> None:
        """A write into a tensor; of a value that is a tensor itself, what fits any place."""
        text = self.draw.choice(WRITES)
        whole = text in ("{0}[:] = {1}", "{0}[...] = {1}", "{0} += {1}", "{0} *= {1}", "{0}.add_({1})", "{0}.mul_({1})")
        if not whole and not value.lstrip("-").replace(".", "").isdigit():
            value += "[0, 0]" if "fill_" not in text else "[0, 0].item()"
            value = "2" if "fill_" in text else value
        is_bound = target.isidentifier() and target not in ("GLOBAL", "outer")
        if text.startswith(("{0} +", "{0} *", "{0} -")) and not is_bound and not target.startswith("self.named["):
            text = "{0}[...] = {1}"  # There is no such assignment, or it would make the name a local one.
        self._line(depth, text.format(target, value))


def made(program: Program, name: str) -> tuple[Any, dict[str, Any]]:
    """A Cell of the program with fresh origins, and its globals."""
    linecache.cache[name] = (len(program.text), None, program.text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"Cell": nn.Cell, "Parameter": Parameter, "Tensor": Tensor, "ops": ops, "msc": msc}
    scope["start"] = start
    exec(compile(program.text, name, "exec", dont_inherit=True), scope)
    return scope["make"](), scope


def observed(program: Program, name: str, *, as_graph: bool) -> list[Any]:
    """Results, contents of all origins, and who is who, after each of three calls; or the error of a call."""
    (net, outer), scope = made(program, name)
    run = msc.jit(net, backend="interpreter") if as_graph else net
    seen: list[Any] = []
    for call in range(3):
        x, xs, xd = Tensor(start(call)), [Tensor(start(call + 1))], {"k": Tensor(start(call + 2))}
        before = [
            x,
            xs[0],
            xd["k"],
            net.weight,
            net.state,
            net.listed[1],
            net.named["k"],
            scope["GLOBAL"],
            outer,
            *net.pair,
        ]
        try:
            results = run(x, xs, xd, 2)
        except REFUSALS as error:
            seen.append(type(error).__name__ if not isinstance(error, msc.MscError) else error.diagnostics[0].code)
            return seen
        after = [xs[0], net.state, net.listed[1], net.named["k"]]
        everything = [*results, *before, *after]
        try:
            seen.append([np.array(t.asnumpy()).tolist() for t in everything])
        except msc.MscError as error:
            seen.append(str(error))
            return seen
        origins = [*before, *after]
        seen.append([next((k for k, origin in enumerate(origins) if origin is t), None) for t in everything])
    return seen


def check(seed: int) -> str:
    """Compare the modes; "" if the program is computed, else the error of both. Raises Difference."""
    program, name = Program(seed), f"<random aliases {seed}>"
    eager, graph = (observed(program, name, as_graph=as_graph) for as_graph in (False, True))
    if eager != graph:
        text = program.text[len(HEAD) :]
        pairs = zip(eager, graph, strict=False)
        first = next(((k, a, b) for k, (a, b) in enumerate(pairs) if a != b), (0, len(eager), len(graph)))
        raise Difference(f"seed {seed}, observation {first[0]}:\n  PyNative {first[1]}\n  graph    {first[2]}\n{text}")
    return eager[-1] if isinstance(eager[-1], str) else ""
