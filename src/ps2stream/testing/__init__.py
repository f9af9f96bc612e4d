"""For tests, ours and yours: the definition of a match, and event logs to try it on.

``oracle`` says what the matches of an event log are, in plain Python. ``generators`` makes random event
logs in which matches do occur, edge cases included. A test of anything that claims to match is then short::

    from ps2stream.testing import generators, oracle

    events = generators.random_events(1000, seed=7)
    assert my_job(events) == oracle.run(events).matches

Of a deployment that runs, and is disturbed, nobody knows the order of events beforehand. Its clients note
what they did and saw (``history``), and ``checker`` says whether some order explains it, by the oracle. It
looks at the log and its acknowledgements (``acknowledged_log``), at what became of each publication
(``fates``), and at where publications stand among updates (``position_laws``).
"""
