#!/bin/sh
# What Spark starts as Python (see session.py). Spark puts an archive of PySpark first on PYTHONPATH, and from an
# archive every process compiles all that it imports: 1.6 s of CPU where the installed package takes 0.4 s. On a
# busy machine that is more than the ten seconds that Spark waits for the reader of a source.
PYTHONPATH="$PS2STREAM_PYTHONPATH" exec "$PS2STREAM_PYTHON" "$@"
