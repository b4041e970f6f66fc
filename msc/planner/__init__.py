"""Many devices, planned: clusters as data, what a step costs on them, and the search for layouts and pipelines."""
