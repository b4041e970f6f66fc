"""Scheduled loops to text: one package per target language. No optimisation happens here."""
