"""``python -m ps2stream``: the command line without its script."""

from __future__ import annotations

import sys

from ps2stream.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
