"""Wrong calls of the library: an error of msc's, with the words of the API, at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
import msc.numpy
from msc import MscError, Tensor, nn, ops
from msc.frontend.boundary import bare_errors
from msc.graph.batching import Batching
from tests.fuzz.api_arguments import Choices
from tests.fuzz.library_calls import call, callables

X = Tensor(np.ones((2, 3), np.float32))
MASKED: Any = np.ma.masked
CALLS = 3000

WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.concat(3), TypeError, "ops.concat: tensors is 3; it takes a sequence of Tensors"),  # pyright: ignore
    (lambda: ops.sum(X, axiss=1), TypeError, "ops.sum has no argument 'axiss'"),  # pyright: ignore
    (lambda: X.sum(dimm=1), TypeError, "Tensor.sum has no argument 'dimm'(.|\n)*did you mean 'dim'"),
    (lambda: ops.add(X), TypeError, r"ops.add needs 'other'(.|\n)*add\(input, other, alpha=1\)"),  # pyright: ignore
    (lambda: nn.Dense(3, 4, bias=1), TypeError, "Dense has no argument 'bias'(.|\n)*'has_bias'"),  # pyright: ignore
    (lambda: nn.Dense(3, 4)(X, X), TypeError, "Dense takes 1 argument without a name, not 2"),  # pyright: ignore
    (lambda: nn.Tanh()(), TypeError, "Tanh needs 'x'"),  # pyright: ignore
    (lambda: nn.Tanh(axis=1), TypeError, "Tanh has no argument 'axis'"),  # pyright: ignore
    (lambda: ops.roll(X, (1, 2), 0), ValueError, r"ops.roll cannot be computed: .* shape \(2, 3\).*shifts is \(1, 2\)"),
    (lambda: ops.shape((1, 2)), TypeError, r"ops.shape: \w+ is \(1, 2\); it takes a Tensor"),  # pyright: ignore
    (lambda: ops.Softmax()(X, X), TypeError, "Softmax"),
    (lambda: msc.grad(nn.Tanh())(X, X), TypeError, "Tanh takes 1 argument without a name, not 2"),
    (lambda: msc.set_seed(), TypeError, "msc.set_seed needs 'seed'"),  # pyright: ignore
    (lambda: msc.get_context(4), TypeError, "msc.get_context: key is 4"),  # pyright: ignore
    (lambda: msc.train.load_checkpoint(), TypeError, "train.load_checkpoint needs"),  # pyright: ignore
    (lambda: ops.avg_pool1d(X[None], 2, 1, (MASKED, 1)), TypeError, r"MSC0813.*\(masked, 1\)"),
    (lambda: X.cumsum((MASKED, 1)), ValueError, r"Tensor.cumsum(.|\n)*it ended with MaskError"),
    (lambda: msc.numpy.arange("a"), TypeError, "numpy.arange.*'a'"),  # pyright: ignore
]


@pytest.mark.parametrize(("wrong", "kind", "message"), WRONG)
def test_the_message_names_what_is_wrong(wrong: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(MscError, match=message) as caught:
        wrong()
    assert isinstance(caught.value, kind)
    assert caught.value.diagnostics[0].location is not None
    assert caught.value.diagnostics[0].location.file == __file__


def test_errors_of_the_users_own_code_stay_what_they_are() -> None:
    class Own(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.SequentialCell(Own())(X)


def test_what_no_argument_explains_says_what_was_raised_and_that_it_may_be_a_bug() -> None:
    with pytest.raises(ValueError, match="MSC0833") as caught:
        ops.roll(X, (1, 2), 0)
    assert "it ended with " in str(caught.value)
    assert "if these arguments are right, this is a bug in msc" in str(caught.value)


def test_an_exception_out_of_the_compiler_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batching, "run", vars(Batching)["_rewrite"])
    with pytest.raises(MscError, match=r"MSC0900.*AttributeError"):
        msc.vmap(ops.relu)(X)


def test_random_calls_end_in_a_result_or_an_error_of_msc() -> None:
    random, named = np.random.default_rng(7), callables()
    names = sorted(named)
    bare: list[str] = []
    for _ in range(CALLS):
        name, data = names[int(random.integers(len(names)))], random.bytes(30)
        try:
            call(name, named[name], Choices(data))
        except MscError as error:
            if error.diagnostics[0].code.startswith("MSC09"):
                bare.append(f"{name}: {error}")
        except bare_errors() as error:
            if str(error) != "no":  # what an object of the test raises, which belongs to the user
                bare.append(f"{name} {data.hex()}: {type(error).__name__}: {error}")
    assert not bare, "\n".join(bare)


def test_a_compiled_cell_is_not_explained_by_what_msc_calls() -> None:
    """`run_construct` is of the inside: a wrong number of arguments is told of `construct`."""
    with pytest.raises(TypeError, match="ReLU takes 1 argument without a name, not 2"):
        msc.jit(nn.ReLU())(Tensor([1.0]), Tensor([1.0]))  # pyright: ignore[reportCallIssue]


class Half(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x / 2


def halved(x: Tensor) -> Tensor:
    return x / 2


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "jit": msc.jit,
    "grad": msc.grad,
    "jit of grad": lambda f: msc.jit(msc.grad(f)),
    "grad of jit": lambda f: msc.grad(msc.jit(f)),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("function", [Half(), halved], ids=["Half", "halved"])
def test_a_wrong_call_of_what_is_compiled_or_differentiated_names_what_was_written(wrapper: str, function: Any) -> None:
    name = getattr(function, "__name__", "Half")
    with pytest.raises(TypeError, match=rf"MSC0833.* {name} takes 1 argument without a name, not 2"):
        WRAPPERS[wrapper](function)(X, X)
    with pytest.raises(TypeError, match=rf"MSC0833.* {name} has no argument 'y'"):
        WRAPPERS[wrapper](function)(X, y=X)


BROKEN: dict[str, Callable[..., Any]] = {
    "KeyError": dict[Any, Any]().__getitem__,
    "TypeError": len,
    "AttributeError": attrgetter("nothing"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_fails_inside_is_a_bug_whatever_is_raised(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message has the call and the place, which repeat it."""
    monkeypatch.setattr("msc.train.serialization.opened", BROKEN[kind])
    with pytest.raises(MscError, match=rf"MSC0900.*{kind}") as caught:
        msc.load_checkpoint(tmp_path / "a.ckpt")
    notes = " ".join(caught.value.diagnostics[0].notes)
    assert "a.ckpt" in notes
    assert "msc.train.serialization, line " in notes


class Negative:
    def __len__(self) -> int:
        return int("-3")

    def __getitem__(self, index: int) -> Any:
        return np.ones(3)


def test_objects_of_users_that_do_not_keep_to_the_rules_are_theirs() -> None:
    with pytest.raises(MscError, match="__len__") as caught:
        list(ds.GeneratorDataset(Negative(), "x").create_tuple_iterator())
    assert not caught.value.diagnostics[0].code.startswith("MSC09")
    with pytest.raises(MscError, match=r"MSC0833.*Two needs 'y'"):
        nn.SequentialCell(Half(), Two())(X)


class Two(nn.Cell):
    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y
