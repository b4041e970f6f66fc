"""The transforms of images where MindSpore's first releases have them."""

from msc.dataset.vision import *
