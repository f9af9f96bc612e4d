"""Partitioners against each other: run as ``python -m ps2stream_bench.partitioning``.

- ``compare``: what a stream costs under the plan of each.
- ``predict``: how well the load functions that they minimise predict the busy time of workers.
- ``speed``: how long they take to make a plan.
- ``sensitivity``: what the thresholds of hybrid partitioning do to its plan.
"""
