"""Micro-benchmarks: one part at a time, run as ``python -m bench.micro.<part>``."""
