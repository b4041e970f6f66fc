"""The paths of MindSpore's modules whose names stand elsewhere here: `from msc.nn.layer import Dense`.

Such a module has no file: a finder, which Python asks last, makes it when it is imported, and its names are looked up
in the modules that the table gives. `import msc` loads this file, so that it imports nothing of msc.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_INTERNALS = "msc.mindspore.internals"

_TABLE: Mapping[str, str] = {
    "msc.nn": (
        "nn.dynamic_lr nn.layer nn.layer.activation nn.layer.basic nn.layer.channel_shuffle nn.layer.combined "
        "nn.layer.container nn.layer.conv nn.layer.dense nn.layer.embedding nn.layer.image nn.layer.math "
        "nn.layer.normalization nn.layer.padding nn.layer.pooling nn.layer.rnn_cells nn.layer.rnns "
        "nn.layer.timedistributed nn.layer.transformer nn.learning_rate_schedule nn.loss nn.loss.loss "
        "nn.optim.ada_grad nn.optim.adadelta nn.optim.adafactor nn.optim.adam nn.optim.adamax nn.optim.asgd "
        "nn.optim.ftrl nn.optim.lamb nn.optim.lars nn.optim.lazyadam nn.optim.momentum nn.optim.proximal_ada_grad "
        "nn.optim.rmsprop nn.optim.rprop nn.optim.sgd nn.utils nn.wrap nn.wrap.cell_wrapper nn.wrap.grad_reducer "
        "nn.wrap.loss_scale nn.cell_wrapper"
    ),
    "msc.nn.metrics": (
        "train.metrics train.metrics.accuracy train.metrics.auc train.metrics.confusion_matrix nn.metrics.metric "
        "train.metrics.cosine_similarity train.metrics.error train.metrics.fbeta train.metrics.loss "
        "train.metrics.metric train.metrics.perplexity train.metrics.precision train.metrics.recall "
        "train.metrics.roc train.metrics.topk"
    ),
    "msc.ops": (
        "mint.special ops._primitive_cache ops._utils "
        "ops.auto_generate ops.auto_generate.gen_ops_prim ops.communication "
        "ops.composite ops.composite.base ops.composite.math_ops ops.composite.multitype_ops ops.deprecated ops.extend "
        "ops.function ops.functional ops.function.array_func ops.function.clip_func ops.function.image_func "
        "ops.function.linalg_func ops.function.math_func ops.function.nn_func ops.function.other_func "
        "ops.function.parameter_func ops.function.random_func ops.function.sparse_func ops.op_selector "
        "ops.operations ops.operations._grad_ops ops.operations._inner_ops ops.operations._rl_inner_ops "
        "ops.operations._sequence_ops ops.operations._tensor_array ops.operations.array_ops "
        "ops.operations.comm_ops ops.operations.control_ops ops.operations.custom_ops ops.operations.debug_ops "
        "ops.operations.image_ops ops.operations.inner_ops ops.operations.linalg_ops "
        "ops.operations.manually_defined ops.operations.math_ops ops.operations.nn_ops ops.operations.other_ops "
        "ops.operations.random_ops ops.operations.sparse_ops"
    ),
    "msc.numpy": (
        "numpy.array_creations numpy.array_ops numpy.dtypes numpy.logic_ops numpy.math_ops numpy.utils "
        "numpy.utils_const"
    ),
    "msc.train": (
        "train.callback._callback train.callback._checkpoint train.callback._early_stop train.callback._history "
        "train.callback._lambda_callback train.callback._loss_monitor train.callback._lr_scheduler_callback "
        "train.callback._reduce_lr_on_plateau train.callback._summary_collector train.callback._time_monitor "
        "train.summary.summary_record train._utils"
    ),
    "msc.amp": "train.amp train.loss_scale_manager",
    "msc.dataset": (
        "dataset.engine dataset.engine.datasets dataset.engine.datasets_vision dataset.engine.iterators "
        "dataset.engine.samplers"
    ),
    "msc.dataset.audio": "dataset.audio.transforms",
    "msc.dataset.text": "dataset.text.transforms dataset.text.utils",
    "msc.dataset.transforms": "dataset.transforms.transforms",
    "msc.dataset.mindrecord": "mindrecord mindrecord.filewriter mindrecord.filereader",
    "msc.common": "common._decorator common.hook_handle common.jit_config common.lazy_inline common.recompute",
    "msc.frontend.process_group": "communication communication.management",
    "msc.frontend.parallel": "parallel parallel._auto_parallel_context parallel._utils parallel.shard",
    "msc.nn.auto_parallel": "parallel.auto_parallel parallel.nn",
    "msc.frontend.devices": "hal device_context device_context.cpu device_context.ascend device_manager profiler",
    "msc.frontend.log": "log",
    "msc": "version run_check",
    _INTERNALS: (
        "_c_expression _extends utils mint.distributed "
        "multiprocessing boost boost.boost_cell_wrapper common._register_for_tensor "
        "common._stub_tensor common.np_dtype common.sparse_tensor nn.optim.thor nn.optim.tft_wrapper ops._op_impl "
        "ops._op_impl.cpu ops._tracefunc ops.op_info_register ops.operations._csr_ops ops.operations._quant_ops "
        "ops.operations._thor_ops ops.vm_impl_registry parallel._tensor rewrite train.node_strategy_pb2 "
        "train.train_thor train.checkpoint_pb2 train.mind_ir_pb2"
    ),
    "msc.mindspore.checkparam": "_checkparam",
}
"""A module -> the paths below msc that have its names."""

PATHS: Mapping[str, str] = {f"msc.{path}": target for target, paths in _TABLE.items() for path in paths.split()}


class _Elsewhere(ModuleType):
    """A module whose names are those of another one; MindSpore's internals have theirs in one place."""

    def __init__(self, path: str, target: str) -> None:
        super().__init__(path, f"The names of {target}, under a path that MindSpore has.")
        vars(self)["__path__"] = []
        self._target = target

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        found = import_module(self._target)
        if name.startswith("_") and not name.startswith("__") and name not in vars(found):
            found = import_module(_INTERNALS)
        return getattr(found, name)


class _Maker(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Elsewhere(spec.name, spec.loader_state)

    def exec_module(self, module: ModuleType) -> None:
        pass


class Finder(MetaPathFinder):
    """Finds the modules of the table; Python asks it for what has no file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module of the table."""
        return _found(fullname, PATHS[fullname]) if fullname in PATHS else None


class StandIn(MetaPathFinder):
    """Finds the modules of MindSpore among those of msc."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module of MindSpore that msc has."""
        first, _, rest = fullname.partition(".")
        here = f"msc.{rest}" if rest else "msc"
        return _found(fullname, here) if first == "mindspore" and _is_there(here) else None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package
        return False


def _found(name: str, target: str) -> ModuleSpec:
    return ModuleSpec(name, _Maker(), is_package=True, loader_state=target)


def stand_in() -> None:
    """Let `import mindspore` give msc in this process, whether MindSpore is installed or not."""
    sys.meta_path.insert(0, StandIn())


def install() -> None:
    """Let Python ask this finder, last of all, and only once."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__qualname__ != "Finder"]
    sys.meta_path.append(Finder())
