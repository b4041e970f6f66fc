"""Latency of msc beside other inference engines: ``python -m benchmarks lenet5``.

* ``models.py``: what is run; one small class per model.
* ``peers.py``: what runs it; one small class per engine.
* ``measure.py``: interleaved timing in one process.
* ``machine.py``: what this machine could do at best, from the C programs in ``probes/``.
* ``report.py``: the printed table and the JSON file.
"""
