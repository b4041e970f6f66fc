"""Cells: the layers that networks are made of, as MindSpore's `nn`."""

from msc.frontend import boundary, old_paths
from msc.nn.activation import *
from msc.nn.basic import *
from msc.nn.cell import *
from msc.nn.containers import *
from msc.nn.convolution import *
from msc.nn.losses import *
from msc.nn.metrics import *
from msc.nn.normalisation import *
from msc.nn.optim.loss_scale import *
from msc.nn.optim.optimizer import *
from msc.nn.optim.rates import *
from msc.nn.optim.scaled_steps import *
from msc.nn.optim.schedules import *
from msc.nn.optim.steps import *
from msc.nn.optim.updates import *
from msc.nn.pooling import *
from msc.nn.recurrent import *
from msc.nn.transformer import *

boundary.surface(globals(), "nn")

old_paths.old_paths(
    "msc.nn",
    "msc.nn",
    "dynamic_lr layer layer.activation layer.basic layer.container layer.conv layer.dense layer.embedding "
    "layer.image layer.math layer.normalization layer.padding layer.pooling layer.rnn_cells layer.rnns "
    "layer.transformer learning_rate_schedule loss loss.loss optim.ada_grad optim.adam optim.ftrl optim.lamb "
    "optim.momentum optim.rmsprop optim.sgd wrap wrap.cell_wrapper wrap.grad_reducer wrap.loss_scale",
)
