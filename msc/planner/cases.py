"""Lists of cases: TOML in, each a model on a cluster, with what is predicted beside what was published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from msc.planner.choice import Choice, Wish, choose, over_memory
from msc.planner.cluster import Cluster, cluster_named
from msc.planner.step import Degrees
from msc.planner.transformer import Gpt
from msc.support.diagnostics import Diagnostic
from msc.support.files import read_source
from msc.support.wording import memory_text, seconds_text
from msc.targets.abilities import figure
from msc.targets.reading import Figures, Reader, Source, parse

_CODE = "MSC1124"


@dataclass(frozen=True)
class DegreesGiven:
    """A mesh as a case has it."""

    dp: int = figure("data-parallel ranks", 1, least=1)
    tp: int = figure("tensor-parallel ranks", 1, least=1)
    pp: int = figure("stages of the pipeline", 1, least=1)
    cp: int = figure("context-parallel ranks", 1, least=1)
    ep: int = figure("expert-parallel ranks, within dp", 1, least=1)


@dataclass(frozen=True)
class Measured:
    """What somebody measured."""

    tflops_per_device: float = figure("10^12 operations a second on each device", 0.0)
    step_s: float = figure("seconds of a step", 0.0)


@dataclass(frozen=True, kw_only=True)
class PlanningCase:
    """One case; what it leaves out is found."""

    name: str = figure("what the case is called", "")
    model: Gpt = figure('the model, such as { kind = "gpt", layers = 24, ... }')
    cluster: str = figure("a ready name, or a file relative to the file of cases")
    global_batch: int = figure("sequences of a step", least=1)
    devices: int = figure("devices, if no mesh is given; 0: all of the cluster", 0)
    mesh: DegreesGiven = figure("the mesh; left out: found", DegreesGiven(0))
    micro_batch: int = figure("sequences that a rank computes at once; left out: found", 0)
    schedule: Literal["gpipe", "1f1b", "interleaved", "found"] = figure("of the pipeline", "found")
    chunks: int = figure("parts of the model on a stage, if interleaved; left out: found", 0)
    recompute: Literal["none", "selective", "full", "found"] = figure("what is recomputed", "found")
    optimizer_level: int = figure("what is cut among data-parallel ranks, 0 to 3", 0, most=3)
    sequence_parallel: bool = figure("whether norms are cut along the sequence", False)
    overlap: bool = figure("whether gradients are reduced during the backward pass", True)
    published: Measured = figure("what was measured", Measured())
    fitted: bool = figure("whether figures of the cluster were fitted on it", False)
    source: str = figure("where it was published", "")


@dataclass(frozen=True)
class PredictedCase:
    """A case and its plan."""

    case: PlanningCase
    cluster: Cluster
    choice: Choice

    @property
    def tflops(self) -> float:
        """10^12 operations a second on each device, by the formula of published tables."""
        plan = self.choice.best.plan
        return self.case.model.flops(plan.global_batch, plan.recompute) / self.step / plan.mesh.devices * 1e-12

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.choice.best.cost.step

    @property
    def error(self) -> float | None:
        """Predicted over published, minus one; of the rate if it was published, else of the step."""
        published = self.case.published
        if published.tflops_per_device:
            return self.tflops / published.tflops_per_device - 1
        return self.step / published.step_s - 1 if published.step_s else None

    @property
    def fits(self) -> bool:
        """Whether the memory of a device holds it."""
        return self.choice.best.cost.peak <= self.cluster.free_memory

    def to_json(self) -> dict[str, object]:
        """The entry of the JSON output."""
        plan, cost = self.choice.best.plan, self.choice.best.cost
        published = self.case.published
        found = {"tflops_per_device": published.tflops_per_device, "step_s": published.step_s}
        return {
            "name": self.case.name,
            "predicted": {
                "tflops_per_device": self.tflops,
                "step_s": self.step,
                "bytes_per_device": round(cost.bytes),
                "memory_per_device": round(cost.peak),
                "bubble": plan.bubble,
            },
            "published": {key: value for key, value in found.items() if value},
            "plan": plan_json(self.choice),
            "fits": self.fits,
        }


def plan_json(choice: Choice) -> dict[str, object]:
    """A chosen plan, its cost by cause, and the plans that lost."""
    plan, cost = choice.best.plan, choice.best.cost
    mesh = {axis: size for axis, size in vars(plan.mesh).items() if size > 1 or axis in ("dp", "tp", "pp")}
    return {
        "mesh": mesh,
        "micro_batch": plan.micro_batch,
        "micro_batches": plan.micro_batches,
        "schedule": plan.schedule,
        "chunks": plan.chunks,
        "recompute": plan.recompute,
        "optimizer_level": plan.optimizer_level,
        "seconds": cost.seconds,
        "bytes": {cause: round(sent) for cause, sent in cost.sent.items()},
        "memory": {cause: round(held) for cause, held in cost.memory.items()},
        "lost": [{"plan": str(each.plan), "step_s": each.cost.step, "why": why} for each, why in choice.lost],
        "tried": choice.tried,
    }


def read_cases(path: Path) -> list[PlanningCase]:
    """The cases of a file. Raises MSC0001 to MSC0003, and MSC1124 for what is no case."""
    text = read_source(path)
    figures, source = parse(text, str(path), _CODE), Source(text, str(path), _CODE)
    reader = Reader(source, {}, "file of cases")
    reader.check_names(figures, {"cases"}, ())
    listed = figures.get("cases")
    if not isinstance(listed, list) or not listed:
        source.fail("the file holds no [[cases]]", ("cases",))
    return [_case(reader, entry, number) for number, entry in enumerate(cast("list[object]", listed))]


def _case(reader: Reader, entry: object, number: int) -> PlanningCase:
    figures: Any = entry
    if isinstance(entry, dict):
        figures = {"name": f"case {number + 1}", **cast(Figures, entry)}
        if isinstance(figures.get("recompute"), bool):
            figures["recompute"] = "full" if figures["recompute"] else "none"
    return reader.table(figures, PlanningCase, ("cases", str(number)))


def predict(case: PlanningCase, folder: Path) -> PredictedCase:
    """What a case takes. Raises MSC1120, MSC1121 for its cluster and MSC1123 if nothing divides."""
    return outcome_on(case, cluster_named(_in_folder(case.cluster, folder)))


def outcome_on(case: PlanningCase, cluster: Cluster) -> PredictedCase:
    """What a case takes on a cluster. Raises MSC1123 if nothing divides."""
    mesh = Degrees(**vars(case.mesh)) if case.mesh.dp else None
    wish = Wish(
        case.global_batch,
        mesh.devices if mesh else case.devices or cluster.devices,
        mesh,
        case.micro_batch or None,
        None if case.schedule == "found" else case.schedule,
        case.chunks or None,
        None if case.recompute == "found" else case.recompute,
        case.optimizer_level,
        case.sequence_parallel,
        case.overlap,
        any_memory=True,
    )
    return PredictedCase(case, cluster, choose(case.model, cluster, wish))


def _in_folder(name: str, folder: Path) -> str:
    beside = folder / name
    return str(beside) if name.endswith(".toml") and beside.exists() else name


def cases_text(outcomes: list[PredictedCase]) -> str:
    """A table of cases for people."""
    lines = [f"{'case':24} {'step':>9} {'TFLOP/s':>8} {'published':>9} {'error':>7} {'memory':>10} {'bubble':>7}  plan"]
    for each in outcomes:
        plan, cost = each.choice.best.plan, each.choice.best.cost
        published = each.case.published
        known = published.tflops_per_device or published.step_s
        beside = f"{known:9.4g} {100 * (each.error or 0.0):+6.1f}%" if known else f"{'':9} {'':7}"
        over = "" if each.fits else f"  (over the {memory_text(each.cluster.free_memory)} of a device)"
        lines.append(
            f"{each.case.name:24} {seconds_text(each.step):>9} {each.tflops:8.1f} {beside} "
            f"{memory_text(cost.peak):>10} {100 * plan.bubble:6.1f}%  {plan}{over}"
        )
    errors = [abs(each.error) for each in outcomes if each.error is not None]
    if errors:
        lines.append(f"error: {100 * sum(errors) / len(errors):.1f} % in the mean, {100 * max(errors):.1f} % at most")
    return "\n".join(lines) + "\n"


def memory_errors(outcomes: list[PredictedCase]) -> list[Diagnostic]:
    """MSC1122 for each case that needs more memory than a device has, but for published ones: those did run."""
    return [
        diagnostic
        for each in outcomes
        if not each.fits and not any(vars(each.case.published).values())
        for diagnostic in over_memory(each.choice.best.cost.memory, each.cluster, f"for {each.case.name}").diagnostics
    ]
