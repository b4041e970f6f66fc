"""MindSpore's `common`: the names that programs import from there. Nothing is defined here."""

from msc.frontend import boundary
from msc.frontend.dtypes import DType as DType
from msc.frontend.dtypes import bool_ as bool_
from msc.frontend.dtypes import float16 as float16
from msc.frontend.dtypes import float32 as float32
from msc.frontend.dtypes import float64 as float64
from msc.frontend.dtypes import int8 as int8
from msc.frontend.dtypes import int16 as int16
from msc.frontend.dtypes import int32 as int32
from msc.frontend.dtypes import int64 as int64
from msc.frontend.dtypes import uint8 as uint8
from msc.frontend.dtypes import uint16 as uint16
from msc.frontend.dtypes import uint32 as uint32
from msc.frontend.dtypes import uint64 as uint64
from msc.frontend.mutable import mutable as mutable
from msc.frontend.parameter import Parameter as Parameter
from msc.frontend.parameter import ParameterTuple as ParameterTuple
from msc.frontend.randomness import get_seed as get_seed
from msc.frontend.randomness import set_seed as set_seed
from msc.ops import Tensor as Tensor

boundary.surface(globals(), "common")
