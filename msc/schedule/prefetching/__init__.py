"""Prefetches of data that the caches do not hold."""
