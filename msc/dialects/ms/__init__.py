"""The tensor dialect: one operation per MindSpore primitive that survives, with value semantics on builtin tensors."""

from xdsl.ir import Dialect

from msc.dialects.ms.elementwise import AddOp, ExpOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp, ParameterOp, YieldOp

OPERATIONS = (ConstantOp, GetParameterOp, ParameterOp, YieldOp, AddOp, ExpOp)

MS = Dialect("ms", list(OPERATIONS))
