"""How do roles work that stay where they are, with topics between them?

Open ``positions.py`` first, the order that everything has; then ``worker_loop.py``, a role on one screen.

    updates ----> registrar ==log==> dispatchers, workers         publications --> dispatcher d
                     ^                                                                | position, plan
                     +--------------- loads --------------- workers <==routed=========+
                                                               +--> matches, rejected

Every role reads places of topics in order and hands on what it made of them, in one piece with a note of how
far it has read (``wire.py``). So a role that dies is replaced by one that reads its note, rebuilds what it
knows from the newest snapshot and the log behind it, and goes on: nothing is lost, doubled or out of order.

    positions        the order: seqs of updates, positions of publications
    entries          the log: what the registrar decided, and how it is written
    routed           packets on their way from a dispatcher to a worker
    reading          records of topics to events, in the order of their arrival or in one that they bring
    registrar        decide, adjust, snapshot; archive: whole subscriptions, to hand over
    dispatcher       route by the plan of a position
    worker           match by the subscriptions of a position; move in at once, move out late
    *_loop           the loops of the three around their wires
    wire             the contract of a role's wire; memory_wire: in this process
    committing       how roles commit; pace: how often; seldom_notes: at least once
    notes, log_tail  where a role begins
    files            plans and snapshots in the store
    reporting        what roles tell of themselves; controlling: what the registrar makes of it
    config           what every role is told
    rejecting        rejected records to their topic; trimming: what has been read for good
    idleness         whether anything is left to do

Nothing in here knows Spark; ``kafka/role_wire.py`` is the wire that is used.
"""
