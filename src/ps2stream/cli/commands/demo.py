"""``ps2stream demo``: the whole system on this machine, on a made-up stream."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import abrupt_interrupts
from ps2stream.cli.options.arguments import count, natural, seconds
from ps2stream.cli.options.engine import INLINE, add_engine
from ps2stream.cli.options.settings import add_settings, settings_from
from ps2stream.cli.spark_log import spark_log
from ps2stream.extras import require

_DESCRIPTION = """\
Run the whole system on this machine, on a made-up but realistic stream.

People all over the world publish short texts (places weighted by population, words by
their real frequency, topics that differ by region) while subscriptions come and go, five
publications to one change. On a terminal you watch throughput, latency, the load of each
worker and some of the matches; elsewhere a line every few seconds. It ends with a summary
and leaves nothing behind. Ctrl-C ends it early, with the summary so far and exit code 130.

It runs in this process, as 'ps2stream run --engine inline' does, and needs no Java. With --engine microbatch
the same stream runs on Spark, as 'ps2stream run' does.

With --drift another part of the world becomes busy every 15 seconds, and you watch how cells move from
worker to worker after it. Loads are counted over a shorter window then (--window 60000 --sigma 1.3).
"""

_EPILOG = """\
examples:
  ps2stream demo
  ps2stream demo --seconds 20 --rate 0          as fast as this machine goes
  ps2stream demo --subscriptions 1000000 --workers 8
  ps2stream demo --drift                        see the load being adjusted
  ps2stream demo --engine microbatch            the same on Spark
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="watch the whole system work on a made-up stream",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_engine(parser, INLINE)
    parser.add_argument(
        "--seconds", metavar="N", type=seconds, default=60.0, help="duration of the stream (default: 60)"
    )
    parser.add_argument(
        "--subscriptions",
        metavar="N",
        type=natural,
        default=100_000,
        help="live subscriptions (default: 100000)",
    )
    parser.add_argument(
        "--rate",
        metavar="N",
        type=count,
        default=10_000,
        help="events a second; 0: no limit (default: 10000)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=count, default=7, help="another seed, another stream (default: 7)"
    )
    parser.add_argument(
        "--drift", action="store_true", help="let the busiest part of the world change, and load follow it"
    )
    add_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    require("ps2stream demo", "demo")
    if arguments.engine != INLINE:
        require(f"ps2stream demo --engine {arguments.engine}", "spark")
    from ps2stream.demo.show import DRIFTING, DemoSettings, Show
    from ps2stream.demo.summary import summary
    from ps2stream.demo.view import open_view

    demo = DemoSettings(
        arguments.seconds, arguments.subscriptions, arguments.rate, arguments.seed, arguments.drift
    )
    settings = settings_from(arguments, DRIFTING if arguments.drift else None)
    view = open_view(sys.stdout)
    with (
        abrupt_interrupts() as interrupts,
        contextlib.nullcontext() if arguments.engine == INLINE else spark_log(interrupts) as log,
        interrupts.tidied_by(view.close),
    ):
        try:
            final = Show(demo, settings, view, interrupts).run(log)
        finally:
            view.close()
    print(summary(final))
    return interrupts.exit_code if interrupts else exit_codes.DONE
