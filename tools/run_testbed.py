"""Run the test bed from a checkout: what `./dev cluster` and `./dev kafka` call."""

from __future__ import annotations

import sys

from testbed.cli import main

if __name__ == "__main__":
    sys.exit(main())
