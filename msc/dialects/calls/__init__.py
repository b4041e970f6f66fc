"""Functions of C that an operation calls (`library_call`), each in a file of its own."""

from msc.dialects.calls import argsort as argsort
