"""MindSpore's `scipy`: linear algebra."""

from msc.scipy import linalg as linalg
