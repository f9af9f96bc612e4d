"""Spark's reports of a failure, in our words: pages of plans and stack traces hold one line that matters."""

from __future__ import annotations

import re

_OWN_ERROR = re.compile(r"ps2stream\.errors\.\w+: (.+)")
#: An exception in the code of a task comes again with the task; it is no death, whatever it says.
_RAISED = re.compile(r"api\.python\.PythonException")
#: What a report says of a process that has gone, with its name; the first that fits says most.
_DEATHS = {
    "a Python process did not start in time": r"failed to connect back|Timed out while waiting for the Py",
    # The one that starts all others dies while it starts: Spark waits for the number of its port.
    "a process that runs tasks died": (
        r"Python worker exited unexpectedly|failed to launch worker"
        r"|EOFException occurred while reading the port number"
    ),
    # Spark counts them until it gives up the task that was lost with each, or the stage whose packets were.
    "executors died, one after the other": (
        r"ExecutorLostFailure|has failed the maximum allowable number of times"
    ),
    # A connection breaks in the code that asks the reader something.
    "the process that reads the source died": (
        r"(?s)(EOFException|SocketException|ClosedChannelException|Broken pipe|Connection reset)"
        r".*PythonStreamingSourceRunner"
    ),
}
#: ``package.NameError: words`` at the start of a line, of Java or of Python; py4j puts a colon before Java's.
_ERROR_LINE = re.compile(r"^\s*(?:: |Caused by: )?([\w.$]+(?:Error|Exception): \S.*)$", re.MULTILINE)
_LONGEST = 300


def report_of(failure: Exception) -> str:
    """Return all that is said of a failure: its words, and those of its causes with where they arose."""
    parts: list[str] = [] if hasattr(failure, "_desc") else [f"{type(failure).__name__}: {failure}"]
    each: BaseException | None = failure
    while each is not None:
        # Spark keeps what it knows of an exception of Java in fields without a public name.
        parts += [str(getattr(each, "_desc", each)), str(getattr(each, "_stackTrace", ""))]
        each = getattr(each, "_cause", None)
    return "\n".join(parts)


def death_of(report: str) -> str:
    """Say which process has died; nothing where it was an error, which would come again."""
    if _OWN_ERROR.search(report) or _RAISED.search(report):
        return ""
    return next((words for words, signs in _DEATHS.items() if re.search(signs, report)), "")


def failure_line(report: str) -> str:
    """Say in one line why a stream failed; an error of ours is that line itself."""
    own: list[str] = _OWN_ERROR.findall(report)
    if own:
        return own[-1]  # Python puts the cause of an error before it
    if "No space left on device" in report:  # Java does not say where
        return (
            "no space left on a disk that Spark writes to: that of the state (its checkpoint) or that of "
            "Spark's own files (SPARK_LOCAL_DIRS)"
        )
    return f"the stream failed: {_line_that_matters(report)}"


def _line_that_matters(report: str) -> str:
    """Return the innermost error, which both languages put last, or else the first line."""
    errors = _ERROR_LINE.findall(report)
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    line = errors[-1] if errors else lines[0] if lines else "Spark does not say why"
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
