"""MindSpore's `parallel.auto_parallel` and `parallel.nn`: settings of training on several ranks, around a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msc.frontend.errors import ApiValueError
from msc.frontend.parallel import get_auto_parallel_context, set_auto_parallel_context
from msc.frontend.process_group import refused
from msc.frontend.settings import unused
from msc.nn.cell import Cell
from msc.nn.optim.steps import PipelineGradReducer
from msc.nn.wrapping import GradAccumulationCell, MicroBatchInterleaved, PipelineCell
from msc.support.argument_values import described
from msc.support.diagnostics import did_you_mean

__all__ = [
    "AutoParallel", "GradAccumulation", "MicroBatchInterleaved", "Pipeline", "PipelineCell", "PipelineGradReducer",
]  # fmt: skip

GradAccumulation, Pipeline = GradAccumulationCell, PipelineCell

_MODES: Mapping[str, tuple[str, str]] = {
    "semi_auto": ("semi_auto_parallel", "recursive_programming"),
    "sharding_propagation": ("auto_parallel", "sharding_propagation"),
    "recursive_programming": ("auto_parallel", "recursive_programming"),
    "dynamic_programming": ("auto_parallel", "dynamic_programming"),
}


class AutoParallel(Cell):
    """A network whose graphs several ranks share; with a search as mode, a search finds how operators are cut.

    Methods set what `set_auto_parallel_context` does, for the process. Raises MSC0895.
    """

    def __init__(self, network: Any, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        if parallel_mode not in _MODES:
            message = f"AutoParallel: parallel_mode is {described(parallel_mode)}"
            help = did_you_mean(str(parallel_mode), _MODES) or f"one of {', '.join(map(repr, _MODES))}"
            raise ApiValueError("MSC0895", message, help=help)
        self.network = network
        mode, search = _MODES[parallel_mode]
        set_auto_parallel_context(parallel_mode=mode, search_mode=search)

    def construct(self, *inputs: Any) -> Any:
        return self.network(*inputs)

    def dataset_strategy(self, config: str | tuple[Any, ...]) -> None:
        """Whether each rank is given its own rows, "data_parallel", or all of them, "full_batch"."""
        if config not in ("data_parallel", "full_batch"):
            raise refused(f"AutoParallel.dataset_strategy: {described(config)}", "'data_parallel' or 'full_batch'")
        set_auto_parallel_context(full_batch=config == "full_batch")

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Share states of the optimizer, or with level 3 weights too, from `threshold` KiB on, among all ranks."""
        if shard_size not in (-1, get_auto_parallel_context("device_num")):
            raise refused(f"AutoParallel.hsdp: shard_size is {described(shard_size)}", "-1: all data-parallel ranks")
        config = {"parallel_optimizer_threshold": threshold, "optimizer_level": optimizer_level}
        set_auto_parallel_context(enable_parallel_optimizer=True, parallel_optimizer_config=config)

    def pipeline(
        self, stages: int = 1, output_broadcast: bool = False, interleave: bool = False, scheduler: str = "1f1b"
    ) -> None:
        """Compute in so many stages, each on as many ranks, in the order of a schedule: "1f1b" or "gpipe"."""
        if interleave or scheduler not in ("1f1b", "gpipe"):
            raise refused(f"AutoParallel.pipeline: {described(scheduler)}, interleave={interleave}", "'1f1b', 'gpipe'")
        unused("AutoParallel.pipeline", output_broadcast=output_broadcast)
        set_auto_parallel_context(pipeline_stages=stages, pipeline_config={"pipeline_scheduler": scheduler})

    def load_operator_strategy_file(self, file_path: str) -> None:
        """Cut operators as a file says, which `save_operator_strategy_file` wrote."""
        set_auto_parallel_context(strategy_ckpt_load_file=file_path)

    def save_operator_strategy_file(self, file_path: str) -> None:
        """Write how operators are cut into a file, when a graph is compiled."""
        set_auto_parallel_context(strategy_ckpt_save_file=file_path)

    def get_pipeline_stages(self) -> int:
        """How many stages there are."""
        return get_auto_parallel_context("pipeline_stages")
