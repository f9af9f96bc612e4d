"""Benchmarks of load adjustment: ``python -m bench.adjustment --help``."""
