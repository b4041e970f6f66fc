"""Latency of msc beside other inference engines: ``python -m benchmarks lenet5``.

* ``models.py``: what is run, by name: ``sample_models.py``, ``mlperf_tiny.py``, ``layers.py``, ``exported.py``.
* ``peers.py``: what runs it; one small class per engine.
* ``measure.py``: interleaved timing in one process.
* What this machine could do at best is measured by ``msc.runtime.machine``.
* ``report.py``: the printed table and the JSON file.
"""
