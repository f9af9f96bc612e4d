"""Balance: the algorithms of load adjustment (Sec. V), without a stream around them.

    loads             the load of cells and workers, counted over a sliding window (Definition 3)
    local_adjustment  from the busiest worker to the least busy one, again and again
    halves            Phase I: divide the terms of a cell, or bring its two halves together
    selection         Phase II, Minimum Cost Migration: which cells move; DP, GR, SI and RA under one protocol
    knapsack          the dynamic program behind DP
    ownership         a plan that is being edited: who owns which cell and which of its terms
    adjustments       the record of one adjustment, as the audit log keeps it
    settings          when and how to adjust

Everything is a function of counters and samples; ``ps2stream.adjusting`` has them and acts on the result.
Open ``local_adjustment`` first.
"""
