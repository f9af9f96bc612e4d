"""Benchmarks of PS2Stream: they use its public interface only."""
