"""The settings that several commands share, as options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ps2stream.cli.options.adjustment import add_adjustment_settings, adjustment_from
from ps2stream.cli.options.usage import told_as_usage
from ps2stream.extras import require

if TYPE_CHECKING:
    from ps2stream.balance.settings import AdjustmentSettings
    from ps2stream.config import Settings
    from ps2stream.partitioning.plan import Plan

#: The names of ``partitioning.PARTITIONERS``: a help text has no time to import them.
PARTITIONER_NAMES = ("grid", "kd-tree", "r-tree", "frequency", "hypergraph", "metric", "hybrid")

_FIELDS = {
    "workers": "n_workers",
    "dispatchers": "n_dispatchers",
    "partitioner": "partitioner",
    "batch_events": "batch_events",
    "load": "load",
    "calibrate": "calibrate",
    "sample": "sample_file",
    "sample_events": "sample_events",
    "sample_prefix": "sample_prefix_events",
    "sample_seed": "sample_seed",
}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job; their defaults are those of ``config.Settings``."""
    group = parser.add_argument_group("settings")
    _add_workers(group)
    group.add_argument(
        "--dispatchers", metavar="D", type=int, help="dispatchers that route publications (default: 2)"
    )
    group.add_argument(
        "--batch-events", metavar="N", type=int, help="the most events of a batch (default: 100000)"
    )
    _add_stop_words(group)
    plan = _add_plan(parser)
    plan.add_argument(
        "--sample", metavar="FILE", type=Path, help="draw the sample from this event log, not from the stream"
    )
    add_adjustment_settings(parser)


def add_plan_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of nothing but planning."""
    group = _add_plan(parser)
    _add_workers(group)
    _add_stop_words(group)


def add_plan_file(parser: argparse.ArgumentParser) -> None:
    """Add the option to use a plan that was made before."""
    parser.add_argument(
        "--plan",
        metavar="FILE",
        type=Path,
        help="route by a plan that 'ps2stream partition' has saved, instead of making one from a sample",
    )


def add_costs(group: argparse._ArgumentGroup) -> None:
    """Add the options that say what loads are."""
    group.add_argument(
        "--load", metavar="NAME", help="what counts as load: candidates, paper (default: candidates)"
    )
    group.add_argument(
        "--calibrate",
        action="store_true",
        default=None,
        help="measure the costs of this machine on the sample before planning; "
        "otherwise the standard costs are used",
    )


def _add_workers(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--workers", metavar="M", type=int, help="workers that share the subscriptions (default: 4)"
    )


def _add_stop_words(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--stop-words",
        metavar="FILE",
        type=Path,
        help="words to ignore in texts and expressions, separated by white space",
    )


def _add_plan(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("plan")
    group.add_argument(
        "--partitioner",
        metavar="NAME",
        help=f"how the load is divided: {', '.join(PARTITIONER_NAMES)} (default: hybrid)",
    )
    add_costs(group)
    group.add_argument(
        "--sample-events", metavar="N", type=int, help="events that the plan is made from (default: 200000)"
    )
    group.add_argument(
        "--sample-prefix",
        metavar="N",
        type=int,
        help="how many events from the start the sample is drawn from (default: 1000000)",
    )
    group.add_argument(
        "--sample-seed", metavar="N", type=int, help="another seed, another sample (default: 0)"
    )
    return group


def settings_from(arguments: argparse.Namespace, adjustment: AdjustmentSettings | None = None) -> Settings:
    """Build the settings; what was not given keeps its default, or is as in ``adjustment``."""
    from dataclasses import replace

    from ps2stream.config import Settings
    from ps2stream.errors import ConfigError
    from ps2stream.sources.event_log import EventLog

    given = {
        _FIELDS[name]: value
        for name, value in vars(arguments).items()
        if name in _FIELDS and value is not None
    }
    # Told before Spark starts, a sample is drawn or old results go.
    if given.get("partitioner") == "hypergraph":
        require("partitioner hypergraph", "hypergraph")
    if given.get("calibrate"):
        require("--calibrate", "calibrate")
    with told_as_usage():
        settings = Settings(**given, adjustment=adjustment_from(arguments, adjustment))
    if settings.sample_file is not None and getattr(arguments, "plan", None) is None:
        # What is wrong with it is noticed before Spark starts or old results go. A plan makes it needless.
        EventLog(settings.sample_file)
    if arguments.stop_words is None:
        return settings
    try:
        return replace(settings, stop_words=tuple(arguments.stop_words.read_text(encoding="utf-8").split()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"stop words {arguments.stop_words} cannot be read: {error}") from error


def settings_and_plan(arguments: argparse.Namespace) -> tuple[Settings, Plan | None]:
    """Build the settings, and read the plan if one was given: it decides on workers and partitioner."""
    from dataclasses import replace

    from ps2stream.errors import ConfigError
    from ps2stream.partitioning.plan import Plan

    settings = settings_from(arguments)
    if arguments.plan is None:
        return settings, None
    plan = Plan.load(arguments.plan)
    planned = {"workers": plan.n_workers, "partitioner": plan.partitioner}
    for option, needed in planned.items():
        given = getattr(arguments, option)
        if given not in (None, needed):
            raise ConfigError(f"--{option} must be {needed}, as in the plan {arguments.plan}; got {given}")
    return replace(settings, n_workers=plan.n_workers, partitioner=plan.partitioner), plan
