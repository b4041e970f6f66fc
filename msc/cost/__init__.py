"""Level 3: what kernels cost on a machine (docs/cost-model.md): one model for every decision, tuner and report."""
