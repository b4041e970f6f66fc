"""Import lines of programs for MindSpore, with the package's name alone changed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import msc
from msc.common.api import constexpr, jit_class

LINES = """
from msc.nn.layer import Conv2d, Dense
from msc.nn.layer.conv import Conv2d
from msc.nn.layer.normalization import BatchNorm2d
import msc.nn.layer.activation as activation; activation.ReLU
from msc.nn.loss.loss import LossBase
from msc.nn.loss import SoftmaxCrossEntropyWithLogits
from msc.nn.optim import Momentum, Adam
from msc.nn.optim.momentum import Momentum
from msc.nn.dynamic_lr import cosine_decay_lr
from msc.nn.learning_rate_schedule import LearningRateSchedule, WarmUpLR
from msc.nn.wrap.cell_wrapper import TrainOneStepCell
from msc.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from msc.nn.metrics import Accuracy
from msc.train.callback import LossMonitor, ModelCheckpoint, SummaryCollector
from msc.train.serialization import export, load_checkpoint
from msc.train.loss_scale_manager import FixedLossScaleManager
from msc.train.amp import auto_mixed_precision
from msc.train import amp, data_sink, DynamicLossScaleManager
from msc.train.model import Model
from msc.common.api import jit, ms_function
from msc.ops.primitive import constexpr
from msc.ops.composite import GradOperation, HyperMap, MultitypeFuncGraph
from msc.ops import functional as F, operations as P; F.partial, P.MatMul
from msc import dtype as mstype; mstype.float32
from msc import Callback, LossMonitor, get_grad, jit_class, ms_class, data_sink
import msc.dataset.engine as de; de.GeneratorDataset
from msc.dataset.engine.datasets import MnistDataset
import msc.dataset.vision.c_transforms, msc.dataset.transforms.c_transforms, msc.dataset.transforms.py_transforms
from msc.dataset.transforms.vision import Inter
""".strip().splitlines()


def test_each_line_in_a_process_that_has_imported_nothing() -> None:
    program = "import sys\nfor line in sys.argv[1:]:\n    for m in [m for m in sys.modules if m.startswith('msc')]:\n"
    program += "        del sys.modules[m]\n    exec(line, {})\n"
    first = [LINES[0], LINES[7], LINES[16]]
    for lines in ([line] for line in first):
        subprocess.run([sys.executable, "-c", program, *lines], check=True)


@pytest.mark.parametrize("line", LINES)
def test_a_line(line: str) -> None:
    exec(line, {})


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(ImportError):
        exec("from msc.nn.layer import Dens", {})
    with pytest.raises(msc.MscError, match="did you mean 'Dense'"):
        exec("import msc.nn.layer; msc.nn.layer.Dens", {})


def test_functions_that_run_in_python_while_a_graph_is_captured() -> None:
    calls: list[int] = []

    @constexpr
    def half(n: int) -> int:
        calls.append(n)
        return n // 2

    @jit_class
    class Factor:
        def __init__(self, value: float) -> None:
            self.value = value

    @msc.jit(fullgraph=True)
    def scaled(x: msc.Tensor) -> msc.Tensor:
        return x * half(x.shape[0]) * Factor(2.0).value

    assert scaled(msc.Tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [4.0, 8.0, 12.0, 16.0]
    assert calls == [4]
