"""Metrics, as MindSpore's: measured over the batches of an evaluation."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.support.wording import a
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, cast

from msc.frontend.boundary import elsewhere, publish
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.nn.metrics.base import Metric
from msc.nn.metrics.classification import (
    F1, ROC, Accuracy, ConfusionMatrix, Fbeta, Precision, Recall, Top1CategoricalAccuracy, Top5CategoricalAccuracy,
    TopKCategoricalAccuracy, auc,
)
from msc.nn.metrics.errors import MAE, MSE, CosineSimilarity, Loss, Perplexity
from msc.support.diagnostics import did_you_mean

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "ConfusionMatrix", "CosineSimilarity", "Fbeta", "Loss", "Metric",
    "Perplexity", "Precision", "Recall", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "auc", "get_metric_fn", "get_metrics", "names",
]

_BY_NAME: dict[str, Callable[..., Metric]] = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1, "loss": Loss,
    "mae": MAE, "mse": MSE, "topk": TopKCategoricalAccuracy, "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy, "confusion_matrix": ConfusionMatrix, "roc_curve": ROC,
    "perplexity": Perplexity, "cosine_similarity": CosineSimilarity,
}
# fmt: on


def names() -> list[str]:
    """The names of metrics."""
    return list(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """The metric of a name. Raises MSC0877."""
    if name not in _BY_NAME:
        near = did_you_mean(str(name), _BY_NAME) or f"there are {', '.join(_BY_NAME)}"
        raise ApiValueError("MSC0877", f"there is no metric {name!r}", help=near)
    try:
        signature(_BY_NAME[name]).bind(*args, **kwargs)
    except TypeError as error:
        advice = f"give the metric itself: metrics={{{name!r}: nn.{_BY_NAME[name].__name__}(...)}}"
        raise ApiTypeError("MSC0877", f"metric {name!r}: {error}", help=advice) from None
    return _BY_NAME[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Metrics by name: from None, names, or a dictionary of names and metrics. Raises MSC0877."""
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        given = cast("Mapping[str, Any]", metrics)
    elif isinstance(metrics, set | list | tuple):
        given = {name: name for name in sorted(cast("set[str]", metrics), key=str)}
    else:
        raise ApiTypeError("MSC0877", f"metrics are names or a dictionary, not {a(type(metrics).__name__)}")
    found: dict[str, Metric] = {}
    for name, value in given.items():
        if not isinstance(value, str | Metric):
            raise ApiTypeError("MSC0877", f"metric '{name}' is {a(type(value).__name__)}, not a Metric or its name")
        found[name] = get_metric_fn(value) if isinstance(value, str) else value
    return found


publish(globals(), __all__, "nn.metrics")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        return elsewhere("msc.nn.metrics", name, __all__)
