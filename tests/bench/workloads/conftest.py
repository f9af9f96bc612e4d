"""One corpus for the tests of workloads."""

import pytest

from ps2stream_bench.workloads import Corpus, corpus_for


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return corpus_for("us", 6000, 7)
