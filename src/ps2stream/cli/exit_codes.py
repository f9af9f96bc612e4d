"""What a command's exit code says; the help of ``ps2stream`` lists the same."""

from __future__ import annotations

DONE = 0
#: Ran, but some records were rejected; of ``explain``: does not match, as grep would say it.
PARTLY = 1
USAGE = 2
#: Bad input or state: the message is on stderr.
FAILED = 3
INTERRUPTED = 130
TERMINATED = 143
#: Whoever read the output has gone, as a shell reports it.
BROKEN_PIPE = 141

EXIT_CODES = """\
exit codes:
  0    done; explain: it matches
  1    done, but some records were rejected; explain: it does not match
  2    wrong usage
  3    bad input, journal or state; the message is on stderr
  130  stopped by Ctrl-C; what was acknowledged is kept
  141  the reader of the output has gone
  143  told to terminate (SIGTERM); what was acknowledged is kept
"""
