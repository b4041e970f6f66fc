"""Titles and explanations of the diagnostic codes, one module for each family of codes."""
