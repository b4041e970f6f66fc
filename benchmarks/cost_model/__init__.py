"""The cost model beside measured times: ``python -m benchmarks.cost_model --collect``, ``--fit``, ``--report``.

* ``corpus.py``: the checked-in file of kernels, schedules and measured times, a line a kernel.
* ``collect.py``: measures kernels of the benchmark's models, and random neighbours of their schedules.
* ``fit.py``: fits the parameters of a machine file to a corpus.
* ``report.py``: the table of errors in the docs.
"""
