"""Micro-benchmarks: one part at a time, run as ``python -m ps2stream_bench.micro.<part>``."""
