"""Where a name of MindSpore's is found that no module of the API has: an alias, an internal one, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from msc.mindspore.refusals import REFUSED, refusal

_TABLE: Mapping[str, str] = {
    "msc.frontend.parallel": (
        "ParallelMode build_searched_strategy load_distributed_checkpoint merge_sliced_parameter"
    ),
    "msc.frontend.jit": "jit",
    "msc.context": "context",
    "msc.amp": "build_train_network",
    "msc.common.dtype": (
        "Float Int QuantDtype TensorType Tuple dtype_to_pytype get_py_obj_dtype list_ number number_type string "
        "tensor_type tuple_ type_none np_dtype byte double half intc intp long short single ubyte uint uintc uintp "
        "bfloat16 dtype_to_nptype float_ int_ pytype_to_dtype ushort float8_e4m3fn "
        "float8_e5m2 hifloat8 qint4x2 complex64 complex128"
    ),
    "msc.ops": "is_tensor",
    "msc": "Symbol from_numpy load jit_class set_recursion_limit",
    "msc.train.dataset_helper": "DatasetHelper connect_network_with_dataset",
    "msc.train.serialization": "async_ckpt_thread_status ckpt_to_safetensors safetensors_to_ckpt",
    "msc.numpy": "allclose",
    "msc.frontend.process_group": "get_rank get_process_group_ranks",
    "msc.ops.collectives": "barrier",
    "msc.frontend.randomness": "initial_seed manual_seed",
    "msc.ops.sparse": "COOTensor CSRTensor RowTensor",
    "msc.ops.philox": "get_rng_state set_rng_state",
}
"""A module -> names that MindSpore also has elsewhere; all of them are in no other meaning anywhere."""

ALIASES: Mapping[str, str] = {name: module for module, names in _TABLE.items() for name in names.split()}

_INTERNALS = "msc.mindspore.internals"


def find(name: str) -> Any:
    """The value of a name of MindSpore's; None if there is none."""
    if name in ALIASES:
        module = import_module(ALIASES[name])
        return module if module.__name__ == f"msc.{name}" else getattr(module, name)
    if name.endswith("_") and not name.startswith("_"):
        method = getattr(import_module("msc.ops").Tensor, name, None)
        if method is not None:
            return method
    internals = import_module(_INTERNALS)
    if name in internals.__all__ or (name.startswith("_") and name in vars(internals)):
        return vars(internals)[name]
    return refusal(name) if name in REFUSED else None
