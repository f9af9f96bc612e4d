"""Benchmarks of load adjustment: ``python -m ps2stream_bench.adjustment --help``."""
