"""The transforms of images under the name that MindSpore's first releases give them."""

from msc.dataset.vision import *  # noqa: F403
