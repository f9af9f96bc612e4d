"""``python -m ps2stream_bench``: the same as ``ps2stream-bench``."""

import sys

from ps2stream_bench.cli import main

sys.exit(main())
