"""The registry: who is subscribed, by id and by seq, and the log that it is a cache of.

    segments   the rows of the subscription log: BEGIN, END, MOVE, DROP; open it first
    log        the log itself: a file for each batch that changed something, and snapshots
    index      the registry, a thin class around the kernels: ids to versions, seqs to ids and regions
    layout     its arrays
    apply      decide what updates do, in the order of seq
    naming     from seqs of subscriptions to their ids, by a directory of intervals
    names      names by seq without the rest, for a worker that stays: in whatever order they come and go
    name_map   the kernels of those

A subscription id has *versions*, one for each subscribe. The log is the truth: the registry, H2 and every
worker's index are built from it, and are thrown away without loss.
"""
