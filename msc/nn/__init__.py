"""Cells: the layers that networks are made of, as MindSpore's `nn`."""

from msc.frontend import boundary
from msc.nn.activation import *
from msc.nn.basic import *
from msc.nn.cell import *
from msc.nn.containers import *
from msc.nn.convolution import *
from msc.nn.losses import *
from msc.nn.mathematics import *
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
from msc.nn.quantised import *
from msc.nn.recurrent import *
from msc.nn.tables import *
from msc.nn.transformer import *
from msc.nn.wrapping import *

boundary.surface(globals(), "nn")
