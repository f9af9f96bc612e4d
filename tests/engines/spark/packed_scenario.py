"""What a driver does on hosts that have nothing of ours but an archive; started by test_packing.py.

python packed_scenario.py ARCHIVE
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engines.spark.cluster_scenarios import of_a_dataframe
from ps2stream.engines.spark.session import cluster_session

_CHECKOUT = str(Path(__file__).parents[3])
#: As in docs/cluster.md.
_SETTINGS = {
    "spark.archives": f"{sys.argv[1]}#packages",
    "spark.executorEnv.PYTHONPATH": "packages",
}


def _look_around(numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Tell what a Python process of a host has of ours."""
    import ps2stream
    from ps2stream.kernels.cache import cache_directory

    kernels = cache_directory()
    for _ in numbers:
        yield {
            "host": os.uname().nodename,
            "package": ps2stream.__file__,
            "directory": os.getcwd(),
            "compiled": sorted(path.name for path in kernels.iterdir()) if kernels else None,
            "checkout": Path(_CHECKOUT).exists(),
            "prefix": sys.prefix,
        }


def main() -> None:
    spark = cluster_session("packed", os.environ["PS2STREAM_MASTER"], conf=_SETTINGS)
    found = of_a_dataframe(spark, 31)
    looks = spark.sparkContext.parallelize(range(24), 12).mapPartitions(_look_around).collect()
    spark.stop()
    print(json.dumps({**found, "looks": looks}))


if __name__ == "__main__":
    main()
