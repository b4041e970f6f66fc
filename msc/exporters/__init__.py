"""Graphs as models of other formats."""
