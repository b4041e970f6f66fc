"""The transforms under the name that early MindSpore gives them."""

from msc.dataset.transforms import *  # noqa: F403
