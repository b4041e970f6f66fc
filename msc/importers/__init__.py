"""Other tools' models to graphs of `ms` operations."""
