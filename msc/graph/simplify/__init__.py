"""Rewrites that leave less to compute."""
