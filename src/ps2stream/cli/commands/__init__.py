"""What does each command do?

A module a command. ``add_parser`` says what can be typed: options, help, examples. ``run`` gets what was
typed, calls one of the packages below the command line, hands the result to ``cli.render`` and returns the
exit code (``cli.exits``). Open ``publish`` first: it is short, and the others are built alike.

``cli.main`` knows the names and imports only the module that was asked for; a module imports what is heavy
(Arrow, numba, Spark) inside ``run``. So ``--help`` answers at once.
"""
