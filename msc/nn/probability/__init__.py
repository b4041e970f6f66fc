"""MindSpore's `nn.probability`: distributions, and functions between them."""

from msc.nn.probability import bijector as bijector
from msc.nn.probability import distribution as distribution
