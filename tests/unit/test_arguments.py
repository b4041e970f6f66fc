"""No argument is swallowed: every public function reads all that it takes, or says of what it does not need why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import msc

ROOT = Path(msc.__file__).parent
FOLDERS = ("amp", "common", "dataset", "frontend", "nn", "numpy", "ops", "train")
ALLOWED = {
    # What holds for every value.
    ("argsort", "stable"),  # orders are always stable
    ("sort", "stable"),
    ("lu_unpack", "unpack_data"),  # what is not asked for is given as well
    ("lu_unpack", "unpack_pivots"),
    ("pinv", "hermitian"),  # one way serves all matrices
    ("set_comm_fusion", "fusion_type"),  # nothing is sent that could be joined
    ("set_comm_fusion", "recurse"),
    ("set_broadcast_flag", "mode"),  # ranks begin with equal parameters
    ("build", "sink_size"),  # graphs are compiled in the first step
    ("build", "epoch"),
    ("build", "sink_mode"),
    ("move_to", "blocking"),  # there is nothing to wait for
    ("add_flags", "flags"),  # graphs depend on the code of a function alone
    ("is_complex", "input"),  # elements are real
    ("topk", "sorted"),  # the largest always come in order
    ("array", "copy"),  # tensors never share memory with what they are made of
    ("depend", "expr"),  # what is written first runs first
    ("init_data", "_"),  # parameters have elements from the start
    ("itself", "_"),
    ("update_loss_scale", "overflow"),  # a fixed scale
    ("get_overflow_status", "status"),  # the gradients alone say it
    ("record", "train_network"),  # no graph is written
    ("SummaryRecord.__init__", "network"),
    ("set_dynamic_columns", "columns"),
    ("construct", "loss_scale"),  # cells that change the scale in a way of their own
    ("epoch_begin", "run_context"),  # an interface
}


def functions(tree: ast.Module) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Name, class and definition of each public function and method, initialisers included."""
    owners = {m: c.name for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for m in c.body}
    nested = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef)
        for inner in ast.walk(outer)
        if inner is not outer and isinstance(inner, ast.FunctionDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node not in nested:
            owner = owners.get(node, "")
            if not node.name.startswith("_") or node.name in ("__init__", "__call__", "__new__"):
                yield (f"{owner}.{node.name}" if node.name == "__init__" else node.name), owner, node


def is_said_only(node: ast.FunctionDef) -> bool:
    """Whether a function is an interface: nothing is in it, or it refuses everything."""
    refuses = isinstance(node.body[-1], ast.Raise) and not any(isinstance(n, ast.Return) for n in ast.walk(node))
    return refuses or all(isinstance(s, ast.Expr | ast.Pass) and not _calls(s) for s in node.body)


def _calls(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def parameters(node: ast.FunctionDef) -> list[str]:
    given = node.args
    stars = [a.arg for a in (given.vararg, given.kwarg) if a is not None]
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + stars


def read(node: ast.FunctionDef) -> set[str]:
    """The names that a function's body loads; `locals()` loads all."""
    names = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return names | set(parameters(node)) if "locals" in names else names


def swallowed() -> Iterator[str]:
    """Arguments that nothing reads. Methods of one name in several classes have the arguments of each other."""
    trees = {
        path: ast.parse(path.read_text("utf-8")) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
    }
    found = [(path, *function) for path, tree in trees.items() for function in functions(tree)]
    shared = {
        (node.name, name)
        for _, _, owner, node in found
        if owner and node.name != "__init__"
        for name in set(parameters(node)) & read(node)
    }
    for path, label, owner, node in found:
        if is_said_only(node) or "reader" in path.parts or ".".join(("Recording", node.name)) == label:
            continue
        for name in set(parameters(node)) - read(node) - {"self", "cls"}:
            known = (label, name) in ALLOWED or (node.name, name) in ALLOWED
            if not known and not (owner and (node.name, name) in shared):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {label}: {name}"


def test_every_argument_is_read() -> None:
    assert list(swallowed()) == []


def test_what_is_allowed_is_there() -> None:
    """An exception that is not needed any more goes."""
    code = "".join(path.read_text("utf-8") for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    missing = {name for name, _ in ALLOWED if f"def {name.rpartition('.')[2]}(" not in code}
    assert not missing
