"""Planning: from a stream to the plan that divides it between workers.

A partitioner (``ps2stream.partitioning``) only sees a sample. This package draws one, lets the partitioner
divide it, and tries the plan on the sample with the real indexes.

    first_plan    sample a log or a journal and make its first plan; open it first
    sampling      draw publications and subscriptions, the same ones for the same events and seed
    trial         route and match a sample by a plan, and count what every worker does
    calibration   measure on a sample what a look, an update and a copy cost here

The same events and seed give the same plan on every machine, unless somebody asks for costs that are
measured on the spot (``Settings.calibrate``): time is not the same twice.
"""
