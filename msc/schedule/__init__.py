"""The auto-scheduler: isl says what is legal, this package decides."""
