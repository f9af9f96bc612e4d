"""Which tests of the benchmark are slow ones.

What a figure says and how its workload is made is tested by ``./dev slow``: it concerns nobody who uses the
package, and it is a tenth of all tests. Always tested is that what is measured is right (peers and engines
find the same matches), the kernels, and that the tool works: a figure from its cases to its page, and the
report in docs/paper.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
ALWAYS = {
    "cluster",
    "micro",
    "peers",
    "test_cli.py",
    "test_committed_report.py",
    "test_contest.py",
    "test_determinism.py",
    "test_figure.py",
    "test_figures.py",
    "test_latency.py",
    "test_microbatch_latency.py",
    "test_report.py",
    "test_results.py",
    "test_runner.py",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] not in ALWAYS:
            item.add_marker(pytest.mark.slow)
