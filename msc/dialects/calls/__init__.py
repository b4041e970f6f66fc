"""Functions of C that an operation calls (`library_call`), each in a file of its own, all of which are imported."""

from importlib import import_module
from pkgutil import iter_modules

for _found in iter_modules(__path__):
    import_module(f"{__name__}.{_found.name}")
