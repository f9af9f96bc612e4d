"""Values of options that only the settings themselves can judge."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class UsageError(Exception):
    """An option has a value that it cannot have; told with the usage of the command, as argparse does."""


@contextlib.contextmanager
def told_as_usage() -> Iterator[None]:
    """Let settings that are out of their range be wrong usage: they come from options here."""
    from ps2stream.errors import ConfigError

    try:
        yield
    except ConfigError as error:
        raise UsageError(_of_options(str(error))) from error


def _of_options(words: str) -> str:
    """Name the option where a message begins with the setting that it stands for."""
    name, _, rest = words.partition(" ")
    option = {"sample_prefix_events": "sample_prefix"}.get(name, name).replace("_", "-")
    return f"--{option} {rest}"
