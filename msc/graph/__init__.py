"""Passes over the graph of ms operations, and the expanders of composite operations."""
