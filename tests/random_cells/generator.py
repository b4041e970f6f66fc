"""Writes the source of random Cells: operators, nesting, control flow, closures, mutation.

All numbers are multiples of powers of two of a modest size, so that every order of evaluation gives the same bits and
no comparison depends on rounding. Variables are typed by their names: `x` tensors of 2x3, `s` scalars of tensors, `k`
Python ints, `items` lists of tensors.
"""

from __future__ import annotations

import random
from collections.abc import Callable

MAXIMUM_DEPTH = 3


class Program:
    """One random Cell. `text` is its source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._indent = 0
        self._count = 0
        self._form = self._random.randint(0, 3)
        self._in_loop = 0
        self._tensors = ["x", "y"]
        self._ints = ["k"]
        self._functions: list[str] = []
        self._lists: list[str] = []
        self.text = self._program()

    def _program(self) -> str:
        self._put("class Net(Cell):")
        with self._block():
            self._put("def __init__(self, weight, child):")
            with self._block():
                self._put("super().__init__()")
                self._put("self.weight = weight")
                self._put("self.child = child")
                self._put(f"self.scale = {self._number()}")
                self._put(f"self.flag = {self._random.choice(['True', 'False'])}")
            self._put("def construct(self, x, y, n, k=2):")
            with self._block():
                self._statements(self._random.randint(3, 7), 0)
                self._put(f"return {self._result()}")
        return "\n".join(self._lines) + "\n"

    # Writing.

    def _put(self, line: str) -> None:
        self._lines.append("    " * self._indent + line)

    def _block(self) -> Program:
        return self

    def __enter__(self) -> None:
        self._indent += 1

    def __exit__(self, *_: object) -> None:
        self._indent -= 1

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    # Expressions.

    def _number(self) -> str:
        return self._random.choice(["1", "2", "0.5", "-1", "3", "-0.5", "4"])

    def _tensor(self, depth: int = 0) -> str:
        choice = self._random.randint(0, 11 if depth < 2 else 3)
        r, t = self._random, self._tensors
        match choice:
            case 0 | 1 | 2:
                return r.choice(t)
            case 3:
                return "self.weight"
            case 4:
                return f"({self._tensor(depth + 1)} {r.choice('+-')} {self._tensor(depth + 1)})"
            case 5:
                return f"({self._tensor(depth + 1)} * {r.choice(['0.5', 'self.scale', '-1', '0.5'])})"
            case 6:
                return f"ops.{r.choice(['maximum', 'minimum'])}({self._tensor(depth + 1)}, {self._tensor(depth + 1)})"
            case 7:
                return f"ops.{r.choice(['abs', 'relu'])}({self._tensor(depth + 1)})"
            case 8:
                return f"({self._tensor(depth + 1)} + {self._int(depth + 1)})"
            case 9 if self._functions:
                return f"{r.choice(self._functions)}({self._tensor(depth + 1)})"
            case 10 if self._lists:
                return f"{r.choice(self._lists)}[{r.choice(['0', '-1'])}]"
            case 11:
                return f"({self._tensor(depth + 1)} if {self._condition(depth + 1)} else {self._tensor(depth + 1)})"
            case _:
                return f"self.child({self._tensor(depth + 1)})"

    def _int(self, depth: int = 0) -> str:
        r = self._random
        match r.randint(0, 6 if depth < 2 else 2):
            case 0:
                return str(r.randint(-3, 5))
            case 1 | 2:
                return r.choice(self._ints)
            case 3:
                return f"({self._int(depth + 1)} {r.choice('+-')} {self._int(depth + 1)})"
            case 4:
                return f"({self._int(depth + 1)} % 3)"
            case 5:
                return f"({self._int(depth + 1)} if {self._condition(depth + 1)} else {self._int(depth + 1)})"
            case _:
                return f"len([{', '.join(self._int(depth + 1) for _ in range(r.randint(1, 2)))}])"

    def _condition(self, depth: int = 0) -> str:
        r = self._random
        compare = r.choice(["<", "<=", ">", ">="])
        match r.randint(0, 7 if depth < 2 else 3):
            case 0 | 1:
                return f"{self._scalar(depth + 1)} {compare} {r.randint(-6, 6)}"
            case 2:
                return f"{self._int(depth + 1)} {compare} {r.randint(-1, 3)}"
            case 3:
                return f"n {compare} {r.randint(0, 4)}"
            case 4:
                return f"not {self._condition(depth + 1)}"
            case 5:
                return f"({self._condition(depth + 1)} {r.choice(['and', 'or'])} {self._condition(depth + 1)})"
            case 6:
                return f"-4 < {self._scalar(depth + 1)} {compare} 9"
            case _:
                return "self.flag"

    def _scalar(self, depth: int) -> str:
        return f"{self._tensor(depth + 1)}.{self._random.choice(['sum', 'max'])}()"

    def _result(self) -> str:
        r = self._random
        parts = [self._tensor(1), r.choice(self._tensors), self._int(1)]
        match self._form:
            case 0:
                return self._tensor(1)
            case 1:
                return ", ".join(parts)
            case 2:
                return f"{{'a': {parts[0]}, 'b': ({', '.join(parts[1:])})}}"
            case _:
                return f"[{', '.join(parts)}, None]"

    # Statements.

    def _statements(self, count: int, depth: int) -> None:
        for _ in range(count):
            self._statement(depth)

    def _statement(self, depth: int) -> None:
        simple: list[Callable[[int], None]] = [
            self._assign,
            self._assign,
            self._assign_int,
            self._augment,
            self._new_tensor,
            self._set_item,
            self._list_change,
        ]
        nested = [self._if, self._if, self._for, self._for_of_tensor, self._while, self._function, self._leave]
        choices = simple + (nested if depth < MAXIMUM_DEPTH else [])
        self._random.choice(choices)(depth)

    def _assign(self, depth: int) -> None:
        self._put(f"{self._random.choice(self._tensors)} = {self._tensor()}")

    def _assign_int(self, depth: int) -> None:
        self._put(f"k = ({self._int()}) % 5")

    def _augment(self, depth: int) -> None:
        self._put(f"{self._random.choice(self._tensors)} {self._random.choice(['+=', '-='])} {self._tensor(1)}")

    def _new_tensor(self, depth: int) -> None:
        name = self._new("x")
        self._put(f"{name} = {self._tensor()}")
        if depth == 0:
            self._tensors.append(name)

    def _set_item(self, depth: int) -> None:
        name, r = self._random.choice(self._tensors), self._random
        self._put(f"{name} = {name} * 1" if r.random() < 0.5 else f"{name} = {name} + 0")
        place = r.choice(["0", "1", "0, 1", ":, 2", "-1", "0:1, 1:"])
        self._put(f"{name}[{place}] {r.choice(['=', '+='])} {self._number()}")

    def _list_change(self, depth: int) -> None:
        if depth == 0 and self._random.random() < 0.6:
            name = self._new("items")
            self._put(f"{name} = [{self._tensor(1)}, {self._tensor(1)}]")
            self._lists.append(name)
        elif self._lists:
            name = self._random.choice(self._lists)
            change = [f"{name}.append({self._tensor(1)})", f"{name}[0] = {self._tensor(1)}", f"{name}.reverse()"]
            self._put(self._random.choice(change))
        else:
            self._assign(depth)

    def _if(self, depth: int) -> None:
        self._put(f"if {self._condition()}:")
        with self._block():
            self._statements(self._random.randint(1, 3), depth + 1)
        if self._random.random() < 0.6:
            self._put("else:")
            with self._block():
                self._statements(self._random.randint(1, 3), depth + 1)

    def _for(self, depth: int) -> None:
        name = self._new("k")
        items = self._random.choice(["range(3)", "[1, 2]", "(0, 2, 1)"])
        self._loop(depth, f"for {name} in {items}:", name)

    def _for_of_tensor(self, depth: int) -> None:
        name = self._new("k")
        self._loop(depth, f"for {name} in range(n):", name)

    def _while(self, depth: int) -> None:
        name = self._new("k")
        self._put(f"{name} = 0")
        condition = self._random.choice([f"{name} < n", f"{name} < 3", f"{name} < 4 and {self._condition(1)}"])
        self._loop(depth, f"while {condition}:", name, f"{name} += 1")

    def _loop(self, depth: int, head: str, name: str, first: str | None = None) -> None:
        self._put(head)
        self._in_loop += 1
        self._ints.append(name)
        with self._block():
            if first is not None:
                self._put(first)
            self._statements(self._random.randint(1, 2), depth + 1)
            self._put("x = ops.minimum(ops.maximum(x, -64), 64)")
            self._put("y = ops.minimum(ops.maximum(y, -64), 64)")
        self._ints.remove(name)
        self._in_loop -= 1
        if self._random.random() < 0.2:
            self._put("else:")
            with self._block():
                self._assign(depth)

    def _function(self, depth: int) -> None:
        if depth > 0:
            self._assign(depth)
            return
        name = self._new("f")
        captured, r = r_choice(self._random, self._tensors), self._random
        match r.randint(0, 3):
            case 0:
                self._put(f"{name} = lambda v: v * 0.5 + {captured}")
            case 1:
                self._put(f"def {name}(v, by={self._int(1)}):")
                with self._block():
                    self._put(f"if {captured}.sum() > {r.randint(-4, 4)}:")
                    with self._block():
                        self._put("return v - by")
                    self._put("return v * 0.5")
            case 2:
                self._put(f"def {name}(v):")
                with self._block():
                    self._put("nonlocal y")
                    self._put(f"y = y * 0.5 + {self._number()}")
                    self._put("return v + y")
            case _:
                self._put(f"def {name}_plus(g):")
                with self._block():
                    self._put(f"return lambda v: g(v) + {self._number()}")
                self._put(f"@{name}_plus")
                self._put(f"def {name}(v):")
                with self._block():
                    self._put("return -v")
        self._functions.append(name)

    def _leave(self, depth: int) -> None:
        if not self._in_loop or self._random.random() < 0.4:
            if depth == 0:
                self._assign(depth)
                return
            self._put(f"if {self._condition()}:")
            with self._block():
                self._put(f"return {self._result()}")
            return
        self._put(f"if {self._condition()}:")
        with self._block():
            self._put(self._random.choice(["break", "continue"]))


def r_choice(source: random.Random, names: list[str]) -> str:
    """One of the names."""
    return source.choice(names)
