"""Ascend machines: published times as cases, and instructions one by one."""
