"""Importers of operators, by family."""
