"""Functions on tensors and operators as objects, as MindSpore's `ops`."""

from msc.frontend import boundary
from msc.frontend.parameter import Parameter as Parameter
from msc.frontend.parameter import ParameterTuple as ParameterTuple
from msc.frontend.tensor import Tensor as Tensor
from msc.frontend.transforms.api import *
from msc.ops.activation import *
from msc.ops.aliases import *
from msc.ops.arithmetic import *
from msc.ops.clipping import *
from msc.ops.collectives import *
from msc.ops.comparison import *
from msc.ops.compositions import *
from msc.ops.creation import *
from msc.ops.custom import *
from msc.ops.decompositions import *
from msc.ops.detection import *
from msc.ops.draws import *
from msc.ops.elementwise import *
from msc.ops.gradient_hooks import *
from msc.ops.images import *
from msc.ops.indexing import *
from msc.ops.joining import *
from msc.ops.linear import *
from msc.ops.losses import *
from msc.ops.mapping import *
from msc.ops.matrices import *
from msc.ops.methods import *
from msc.ops.normalisation import *
from msc.ops.operators.arithmetic import *
from msc.ops.operators.functions import *
from msc.ops.operators.layers import *
from msc.ops.operators.recurrent import *
from msc.ops.operators.shapes import *
from msc.ops.operators.training import *
from msc.ops.ordering import *
from msc.ops.primitive import *
from msc.ops.random import *
from msc.ops.rearranging import *
from msc.ops.reductions import *
from msc.ops.sampling import *
from msc.ops.scalars import *
from msc.ops.scattering import *
from msc.ops.selection import *
from msc.ops.sequence_losses import *
from msc.ops.shapes import *
from msc.ops.sparse import *
from msc.ops.special import *
from msc.ops.statistics import *
from msc.ops.summaries import *
from msc.ops.unary import *
from msc.ops.windows import *

from msc.ops import members as members  # isort: skip  # methods of tensors that are functions of what stands above

boundary.surface(globals(), "ops")
