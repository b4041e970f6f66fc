"""Verifiers of the loop stage."""
