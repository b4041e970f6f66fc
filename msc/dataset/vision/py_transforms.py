"""The transforms of images under the name that early MindSpore gives them."""

from msc.dataset.vision import *  # noqa: F403
