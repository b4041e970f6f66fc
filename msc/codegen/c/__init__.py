"""Scheduled loops to C11 with GCC/Clang vector extensions."""
