"""Training steps whose states lie as they like: `msc.compile(step, ..., any_layout=True)`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from msc.dialects.arrays import Array
from msc.runtime.artifact import CompiledModel
from msc.support.diagnostics import MscError
from msc.train.model import StepLoop

ROWS, INPUTS, CLASSES = 32, 40, 5
IDENTITY = "func.func @main(%x: {0}) -> {1} {{\nfunc.return %x : {1}\n}}"


class Clipped(nn.Cell):
    """A step whose gradients are cut by their common norm, which no product computes the update with."""

    def __init__(self, net: nn.Cell, loss: nn.Cell, optimizer: nn.Cell) -> None:
        super().__init__()
        self.net, self.loss, self.optimizer = net, loss, optimizer
        self.gradient = msc.value_and_grad(self.forward, None, net.trainable_params())

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.net(x), y)

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        loss, gradients = self.gradient(x, y)
        self.optimizer(ops.clip_by_global_norm(gradients, 0.5))
        return loss


def network() -> nn.Cell:
    net = nn.SequentialCell(nn.Dense(INPUTS, 24, activation="relu"), nn.Dense(24, CLASSES))
    random = np.random.default_rng(3)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(random.standard_normal(parameter.shape).astype(np.float32) / 5))
    return net


def batch() -> tuple[Array, Array]:
    random = np.random.default_rng(4)
    return random.standard_normal((ROWS, INPUTS)).astype(np.float32), random.integers(0, CLASSES, ROWS).astype(np.int32)


def grouped(net: nn.Cell) -> list[dict[str, object]]:
    parameters = net.trainable_params()
    weights = [p for p in parameters if p.name.endswith("weight")]
    return [{"params": weights, "weight_decay": 0.01}, {"params": [p for p in parameters if p.name.endswith("bias")]}]


OPTIMIZERS: dict[str, Callable[[nn.Cell], Any]] = {
    "SGD": lambda net: nn.SGD(net.trainable_params(), 0.1),
    "Momentum": lambda net: nn.Momentum(grouped(net), 0.1, 0.9),
    "Adam": lambda net: nn.Adam(net.trainable_params(), 0.01),
    "AdamWeightDecay": lambda net: nn.AdamWeightDecay(net.trainable_params(), 0.01, weight_decay=0.1),
    "Lamb": lambda net: nn.Lamb(net.trainable_params(), 0.01),
    "RMSProp": lambda net: nn.RMSProp(net.trainable_params(), 0.01),
}  # fmt: skip


def step_of(optimizer: str, clipped: bool = False) -> nn.Cell:
    net, loss = network(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    if clipped:
        return Clipped(net, loss, OPTIMIZERS[optimizer](net)).set_train()
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), OPTIMIZERS[optimizer](net)).set_train()


def compiled(step: nn.Cell, any_layout: bool = True) -> tuple[CompiledModel, dict[str, Array]]:
    model = msc.compile(step, *map(Tensor, batch()), march="x86-64-v3", any_layout=any_layout)
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    return model, {t.name: model.state(t.name, values[t.name]) for t in model.inputs[2:]}


def losses(model: CompiledModel, states: dict[str, Array], count: int = 4) -> list[float]:
    return [float(np.ravel(model.results(*batch(), *states.values())[0])[0]) for _ in range(count)]


def orders(model: CompiledModel) -> list[str]:
    return [t.name for t in model.signature.inputs if t.order]


@pytest.mark.parametrize(("optimizer", "clipped"), [*((optimizer, False) for optimizer in OPTIMIZERS), ("Adam", True)])
def test_steps_are_those_of_weights_that_lie_as_they_are(optimizer: str, clipped: bool) -> None:
    plain, given = compiled(step_of(optimizer, clipped), any_layout=False)
    model, states = compiled(step_of(optimizer, clipped))
    np.testing.assert_allclose(losses(model, states), losses(plain, given), rtol=1e-4)
    for name, state in states.items():
        np.testing.assert_allclose(state, given[name], rtol=2e-3, atol=2e-4)
    assert orders(plain) == []


def test_the_first_layer_lies_as_it_is_read_and_the_second_as_it_is() -> None:
    model, states = compiled(step_of("Momentum"))
    assert orders(model) == ["0.weight", "moments.0.weight"]
    assert states["0.weight"].shape == (24, INPUTS)
    assert states["0.weight"].T.flags.c_contiguous


def test_a_loop_of_steps_leaves_the_weights_of_single_steps() -> None:
    x, y = batch()
    xs, ys = np.stack([x, -x, 2 * x]), np.stack([y, y, y])
    model, states = compiled(step_of("Momentum"))
    loss = [model.results(*rows, *states.values())[0] for rows in zip(xs, ys, strict=True)][-1]
    step = step_of("Momentum")
    loop = msc.compile(StepLoop(step), *map(Tensor, (np.int64(3), xs, ys)), march="x86-64-v3", any_layout=True)
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    carried = {t.name: loop.state(t.name, values[t.name.removeprefix("step.")]) for t in loop.inputs[3:]}
    last = loop.results(np.array(3), xs, ys, *carried.values())[0]
    assert [name.removeprefix("step.") for name in orders(loop)] == orders(model) == ["0.weight", "moments.0.weight"]
    np.testing.assert_array_equal(last, loss)
    for name, state in carried.items():
        np.testing.assert_array_equal(state, states[name.removeprefix("step.")])


def test_a_step_goes_on_from_a_copy_of_its_states_with_the_same_bits() -> None:
    model, states = compiled(step_of("Adam"))
    losses(model, states, 2)
    kept = {name: np.array(state, order="C") for name, state in states.items()}
    first = losses(model, states)
    again = {name: model.state(name, value) for name, value in kept.items()}
    assert losses(model, again) == first
    assert all(np.array_equal(again[name], state) for name, state in states.items())


def test_other_functions_read_the_states_between_steps(tmp_path: Path) -> None:
    step = step_of("Momentum")
    model, states = compiled(step)
    losses(model, states, 2)
    net = network()
    net.set_train(False)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(states[parameter.name]))
    x, _ = batch()
    found = msc.compile(net, Tensor(x), march="x86-64-v3")(x)
    hidden = np.maximum(x @ states["0.weight"].T + states["0.bias"], 0)
    np.testing.assert_allclose(found, hidden @ states["1.weight"].T + states["1.bias"], rtol=1e-4, atol=1e-4)
    msc.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    for name, value in msc.load_checkpoint(str(tmp_path / "net.ckpt")).items():
        np.testing.assert_array_equal(value.asnumpy(), states[name])


def test_results_are_the_arrays_that_were_given() -> None:
    model, states = compiled(step_of("SGD"))
    results = model.results(*batch(), *states.values())
    assert all(any(result is state for result in results) for state in states.values())


def test_an_artifact_knows_its_orders(tmp_path: Path) -> None:
    model, states = compiled(step_of("Momentum"))
    model.save(tmp_path / "step.so")
    other = msc.load(tmp_path / "step.so")
    assert other.signature == model.signature
    own = {name: other.state(name, state) for name, state in states.items()}
    assert losses(other, own, 2) == losses(model, states, 2)


def test_the_header_says_in_which_order_axes_lie(tmp_path: Path) -> None:
    path = msc.export(step_of("SGD"), *map(Tensor, batch()), file_name=str(tmp_path / "step.mir"), any_layout=True)
    from click.testing import CliRunner

    from msc.driver.cli import command

    made = CliRunner().invoke(command, ["compile", path, "-o", str(tmp_path / "step.c"), "--name", "step"])
    assert made.exit_code == 0, made.output
    header = (tmp_path / "step.h").read_text("utf-8")
    assert f"f32 {INPUTS}x24, whose axes are [1, 0] of the model's tensor" in header
    assert "_ORDER {1, 0}" in header


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (np.zeros((24, INPUTS), np.float32), "MSC0614"),
        (np.zeros((INPUTS, 24), np.float32), "MSC0603"),
        (np.zeros((24, INPUTS), np.float64), "MSC0604"),
        ([[0.0] * INPUTS] * 24, "MSC0614"),
    ],
)
def test_an_array_that_lies_otherwise_is_refused(state: Any, code: str) -> None:
    model, states = compiled(step_of("SGD"))
    with pytest.raises(MscError) as raised:
        model(*batch(), *{**states, "0.weight": state}.values())
    assert raised.value.diagnostics[0].code == code


def test_state_refuses_names_and_shapes() -> None:
    model, _ = compiled(step_of("SGD"))
    with pytest.raises(MscError, match="MSC0602"):
        model.state("0.wieght", np.zeros((24, INPUTS), np.float32))
    with pytest.raises(MscError, match="MSC0603"):
        model.state("0.weight", np.zeros((INPUTS, 24), np.float32))


def test_a_file_says_itself_what_is_open(tmp_path: Path) -> None:
    (tmp_path / "model.mir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\nfunc.return %x : tensor<4xf32>\n}"
    )
    with pytest.raises(MscError, match="MSC0014"):
        msc.compile(tmp_path / "model.mir", any_layout=True)


def test_open_sizes_have_no_order_of_their_own() -> None:
    with pytest.raises(MscError, match="MSC0014"):
        msc.compile(step_of("SGD"), Tensor(shape=(None, INPUTS), dtype=msc.float32), any_layout=True)


def test_another_value_of_the_attribute_is_refused(tmp_path: Path) -> None:
    text = IDENTITY.format("tensor<4x5xf32> {ms.layout = [0, 0]}", "tensor<4x5xf32>")
    (tmp_path / "model.mir").write_text(text)
    with pytest.raises(MscError, match="MSC0203"):
        msc.compile(tmp_path / "model.mir")
