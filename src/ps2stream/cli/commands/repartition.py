"""``ps2stream repartition``: would another plan serve a job better? Ask, or let the job find out."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from ps2stream.cli import exit_codes
from ps2stream.cli.options.adjustment import add_margin, adjustment_from
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.options.settings import add_costs
from ps2stream.cli.options.usage import told_as_usage
from ps2stream.cli.render.output import note, print_json
from ps2stream.deployment.home import Home, state_of

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.deployment.deployment_events import DeploymentEvents
    from ps2stream.partitioning.plan import Plan
    from ps2stream.partitioning.sample import Sample
    from ps2stream.state.state import State

_DESCRIPTION = """\
Make a new plan for what the stream of a job is like now.

Alone it asks the running job to consider a new plan before its next batch, without waiting until
that is due (--check-every). The job adopts it if it gains enough; 'ps2stream adjustments' tells.

With --dry-run nothing is changed, and no job need run. A new plan is made from one half of a sample
(publications from the journal's newest events, and live subscriptions), and compared with the job's plan
on the other half. Loads are milliseconds of worker time for 1,000 publications. The gain is by how much
the load of the busiest worker falls; the job switches if it is above the margin.
"""

_EPILOG = """\
examples:
  ps2stream repartition --dry-run
  ps2stream repartition --dry-run --sample-events 400000 --margin 0.1 --json
  ps2stream repartition
"""

#: With fewer publications than this a plan is mostly made of chance.
_FEW = 2_000

_DRY_ONLY = ("load", "calibrate", "margin", "sample_events", "sample_prefix", "sample_seed")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "repartition",
        help="consider a new plan for a running job, or say what it would gain",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what a new plan would gain, and change nothing"
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    group = parser.add_argument_group("judging, with --dry-run")
    add_costs(group)
    add_margin(group)
    group.add_argument(
        "--sample-events",
        metavar="N",
        type=int,
        help="half as many publications and half as many subscriptions are looked at (default: 200000)",
    )
    group.add_argument(
        "--sample-prefix",
        metavar="N",
        type=int,
        help="how many of the newest events the publications are drawn from (default: 1000000)",
    )
    group.add_argument(
        "--sample-seed", metavar="N", type=int, help="another seed, another sample (default: 0)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    home = existing_home(arguments)
    state = state_of(home)
    if arguments.dry_run:
        _judge(arguments, home)
        return exit_codes.DONE
    for option in _DRY_ONLY:
        if getattr(arguments, option) is not None:
            arguments.parser.error(f"--{option.replace('_', '-')} needs --dry-run")
    _ask(home, state)
    if arguments.json:
        print_json({"requested": True})
    else:
        print("asked: the job considers a new plan before its next batch; see 'ps2stream adjustments'")
    return exit_codes.DONE


def _ask(home: Home, state: State) -> None:
    from ps2stream.deployment.job_life import job_life
    from ps2stream.errors import StateError

    if not job_life(home, state).is_running:
        where = state.store.location()
        raise StateError(f"no job is running on {where}; without one, --dry-run can tell the gain")
    if state.mailbox.read_status() is None:
        raise StateError(
            "the running job has counted no loads: it has done no batch yet, or does not adjust its load "
            "(--adjust off, or one worker)"
        )
    state.mailbox.request_repartition()


def _judge(arguments: argparse.Namespace, home: Home) -> None:
    from ps2stream.adjusting.repartitioning import consider
    from ps2stream.cli.render.gain_text import object_of, print_gain
    from ps2stream.deployment.settled import settled

    with closing(home.events()) as events:
        known = settled(home, None, lambda state: _known(arguments, home, state, events))
        _check(known.sample, home, events)
    considered = consider(known.sample, known.plan, known.settings)
    shown = object_of(
        considered,
        known.plan,
        known.sample,
        known.settings.adjustment.margin,
        is_switching=known.is_switching,
    )
    if arguments.json:
        print_json(shown)
    else:
        print_gain(shown)


class _Known(NamedTuple):
    """What a new plan is judged by."""

    settings: Settings
    plan: Plan
    is_switching: bool
    sample: Sample


def _known(arguments: argparse.Namespace, home: Home, state: State, events: DeploymentEvents) -> _Known:
    from ps2stream.adjusting.disk_sample import sample_on_disk
    from ps2stream.deployment.decided_log import decided_log

    settings = _settings(arguments, home, state)
    log = decided_log(home, state)
    sample = sample_on_disk(events.newest(settings.sample_prefix_events), log, settings)
    plans = log.plans()
    assert plans is not None  # there is a job
    return _Known(settings, plans.newest, plans.older is not None, sample)


def _settings(arguments: argparse.Namespace, home: Home, state: State) -> Settings:
    """Plan as the job does, as far as it has left word, and as the options say."""
    from dataclasses import replace

    from ps2stream.balance.settings import AdjustmentSettings

    told = state.mailbox.read_status() or {}
    margin = {name: told[name] for name in ("margin",) if name in told}
    of_job = home.settings()
    with told_as_usage():
        given = {
            "load": arguments.load or told.get("load"),
            "calibrate": arguments.calibrate,
            "sample_events": arguments.sample_events,
            "sample_prefix_events": arguments.sample_prefix,
            "sample_seed": arguments.sample_seed,
            "adjustment": adjustment_from(arguments, AdjustmentSettings(**margin)),
        }
        return replace(of_job, **{name: value for name, value in given.items() if value is not None})


def _check(sample: Sample, home: Home, events: DeploymentEvents) -> None:
    """Tell of a sample that is small; raise if it says nothing."""
    from ps2stream.errors import StateError

    if sample.n_publications < _FEW:
        position = events.pruned()
        pruned = f"; it was pruned up to position {position}" if position else ""
        left = f"{events} holds only {sample.n_publications:,} publications to judge by{pruned}"
        if sample.n_publications < 2:
            raise StateError(left)
        note(f"ps2stream: {left}; another {_FEW:,} may say something else")
    if sample.n_live == 0:
        raise StateError(f"the job of {home.directory} has no live subscriptions: there is no load to divide")
