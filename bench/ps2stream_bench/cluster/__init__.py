"""PS2Stream on the hosts of the test bed: what figures start there, and how they measure it.

    bed.py              start a driver of ours in a bed, as a child, and take the rows that it says
    members.py          who is in the bed, as a driver finds it described
    processor_time.py   seconds of every process, by host and by kind; none is lost when a process ends
    traffic.py          bytes through the cables of hosts and store
    replay_driver.py    a driver: replay an event log, perhaps lose a host on the way
    batch_driver.py     a driver: match_events and a join in Spark SQL on the same files, in turns

The test bed is a tool of the project's checkout and no dependency: it is a command that is started, and a
description in JSON that is read. Where it is missing, or may not make network namespaces, figures say so in
a row (``UnavailableError``).
"""
