"""Random loops on tensors: whatever they carry, read by entries and write into entries, buffers keep it apart."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.interp import evaluate, evaluate_loops
from msc.ir.reading import parse_module

VECTOR, STACK = "tensor<3xf32>", "tensor<4x3xf32>"
HEAD = """func.func @main(%x: tensor<3xf32>, %t: tensor<4x3xf32>, %f: tensor<i1>, %p: tensor<i64>)"""
PROLOGUE = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c3 = arith.constant 3 : index
%c4 = arith.constant 4 : index
%go = tensor.extract %f[] : tensor<i1>
%empty = tensor.empty() : tensor<4x3xf32>
%made = ms.neg %t
"""
NUMBERS = """
%k{0} = arith.index_cast %i{0} : index to i64
%n{0} = tensor.from_elements %k{0} : tensor<i64>
%b{0} = arith.subi %c3, %i{0} : index
%m{0} = arith.index_cast %b{0} : index to i64
%u{0} = tensor.from_elements %m{0} : tensor<i64>
"""
"""The number of the iteration as a tensor, from the front (%n) and from the back (%u)."""


class Writer:
    """Writes operations whose operands are drawn from what is in sight."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines = [PROLOGUE]
        self.counter = 0
        self.values = {VECTOR: ["%x"], STACK: ["%t", "%made"]}
        self.places = ["%p"]

    def name(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def pick(self, type_: str) -> str:
        """One of the values in sight that were made last."""
        return self.draw(st.sampled_from(self.values[type_][:-6:-1]))

    def define(self, type_: str, text: str) -> None:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        self.values[type_].append(name)

    def operation(self) -> None:
        """One operation on values in sight."""
        type_ = self.draw(st.sampled_from([VECTOR, STACK]))
        kind = self.draw(st.sampled_from(["tanh", "sub", "extract_slice", "insert_slice", "if"]))
        place = self.draw(st.sampled_from(self.places))
        match kind:
            case "tanh":
                self.define(type_, f"ms.tanh {self.pick(type_)}")
            case "sub":
                self.define(type_, f"ms.sub {self.pick(type_)}, {self.pick(type_)}")
            case "extract_slice":
                self.define(VECTOR, f"ms.extract_slice {self.pick(STACK)}, {place}")
            case "insert_slice":
                self.define(STACK, f"ms.insert_slice {self.pick(STACK)}, {place}, {self.pick(VECTOR)}")
            case _:
                self.branches(type_)

    def branches(self, type_: str) -> None:
        name, outer = self.name(), {t: list(names) for t, names in self.values.items()}
        self.lines.append(f"{name} = scf.if %go -> ({type_}) {{")
        for separator in ("} else {", "}"):
            for _ in range(self.draw(st.integers(0, 2))):
                self.define(type_, f"ms.sin {self.pick(type_)}")
            self.lines += [f"scf.yield {self.pick(type_)} : {type_}", separator]
            self.values = {t: list(names) for t, names in outer.items()}
        self.values[type_].append(name)

    def loop(self, depth: int) -> None:
        """A loop that carries some values, with a body of operations and maybe another loop."""
        types = self.draw(st.lists(st.sampled_from([VECTOR, STACK]), min_size=1, max_size=3))
        starts = [self.draw(st.sampled_from([*self.values[t], *(["%empty"] if t == STACK else [])])) for t in types]
        starts = ["%made" if s == "%empty" and not self.draw(st.booleans()) else s for s in starts]
        outer, places = {t: list(names) for t, names in self.values.items()}, list(self.places)
        number, results, carried = self.counter, [self.name() for _ in types], [self.name() for _ in types]
        written = [k for k, s in enumerate(starts) if s == "%empty"]
        arguments = ", ".join(f"{c} = {s}" for c, s in zip(carried, starts, strict=True))
        listed = ", ".join(types)
        self.lines.append(
            f"{', '.join(results)} = scf.for %i{number} = %c0 to %c4 step %c1 iter_args({arguments}) -> ({listed}) {{"
        )
        self.lines.append(NUMBERS.format(number))
        self.places = [*self.places, f"%n{number}", f"%u{number}"]
        for k, (type_, name) in enumerate(zip(types, carried, strict=True)):
            if k not in written:
                self.values[type_].append(name)
        for _ in range(self.draw(st.integers(1, 5))):
            self.operation()
        if depth:
            self.loop(depth - 1)
        given = [self.pick(t) for t in types]
        for k in written:
            given[k] = self.name()
            self.lines.append(f"{given[k]} = ms.insert_slice {carried[k]}, %n{number}, {self.pick(VECTOR)}")
        self.lines.append(f"scf.yield {', '.join(given)} : {listed}\n}}")
        self.values, self.places = outer, places
        for type_, name in zip(types, results, strict=True):
            self.values[type_].append(name)

    def text(self) -> str:
        """The program, which returns all that it has made."""
        named = [(name, t) for t in (VECTOR, STACK) for name in self.values[t][1:]]
        body, types = "\n".join(self.lines), ", ".join(t for _, t in named)
        return f"{HEAD} -> ({types}) {{{body}\nfunc.return {', '.join(n for n, _ in named)} : {types}\n}}"


@st.composite
def programs(draw: st.DrawFn) -> str:
    writer = Writer(draw)
    for _ in range(draw(st.integers(0, 2))):
        writer.operation()
    for _ in range(draw(st.integers(1, 2))):
        writer.loop(draw(st.integers(0, 1)))
    return writer.text()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(), st.booleans(), st.integers(-4, 3))
def test_loops_on_buffers_compute_what_loops_on_tensors_do(text: str, flag: bool, place: int) -> None:
    """Fresh buffers are poisoned, and the memory plan is verified on the way."""
    rng = np.random.default_rng(0)
    x, t = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((3,), (4, 3)))
    inputs = [x, t, np.array(flag), np.array(place)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "loops.mir"
        path.write_text(text)
        compiled = compile_model(str(path), CompileOptions(march="generic")).module
    wanted = evaluate(parse_module(new_context(), text, "loops.mir"), inputs, {})
    for got, expected in zip(evaluate_loops(compiled, inputs, {}), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
