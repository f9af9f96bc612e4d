"""What ends a command of the test bed with a message instead of a traceback."""

from __future__ import annotations


class BedError(Exception):
    """Something did not work; the message says what, and where to look."""

    exit_code = 1


class MissingRequirementError(BedError):
    """The machine lacks something; the message says what to do about it."""

    exit_code = 3
