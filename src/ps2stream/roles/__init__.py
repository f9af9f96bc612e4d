"""The roles: what the paper's processes do, without a word about where they run (Sec. III-B).

    updates ------> update_compiler --> registrar --> segment of the subscription log
                                           | H2                 |
    publications --> dispatcher <----------+                    |
                        | ROUTED packets, one a worker          v
                        +-------------------------------> worker (its index)
                                                            | FOUND packets
                                                            v
                                                          merger --> sink

Arrow comes in and Arrow goes out. An engine decides which process calls a role, and carries the packets; it
may call it again after a crash. That is harmless, because each role is a function of what it is given and of
indexes that the log can rebuild.

    update_compiler  expressions become clauses of hashed terms: the expensive part, done in parallel
    registrar        where all subscriptions begin and end; decides in the order of seq
    living           what lives after a batch, as a snapshot has it
    dispatcher       tokenises publications and sends each to the workers that own one of its live terms
    worker           keeps one part of the subscriptions and finds matches with it
    merger           orders and names what workers found
    worker_host      where a worker lives: the contract by which others ask for it
    heap_host        a worker on the heap of this process (the inline engine's)
    migration        who takes over which subscriptions, as rows of the log (Sec. V)
    packets          the schemas between roles, and their bytes
    reports          what a role tells of a batch: counts of work, and processor time

Open ``dispatcher`` first, then ``worker`` and ``merger``: that is the way of a publication.
"""
