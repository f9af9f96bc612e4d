"""How is a running deployment doing, in numbers that anybody can watch?

Open ``measures.py`` first: what a role measures, as plain values that go through pickle, JSON and topics.

    names       every metric: its name, its kind, its meaning; the only list of them
    measures    Histogram and RoleMeasures: the values
    recorder    what a role counts with while it works
    board       the newest measures of all roles; rates, quantiles and restarts made of them
    exposition  a board as Prometheus reads it (needs the extra ``metrics``)
    endpoint    the same over HTTP

    role: Recorder --RoleMeasures--> driver: Board --> HTTP /metrics        (ps2stream run --metrics)
                                               \\-----> board.json            (ps2stream top)

Counts rise from the start of a role's process and never fall; rates are taken by whoever looks, over the time
that they choose. Each is counted by one role only, so that a sum over all roles is the count of the job. How
measures come from a role to the driver is the engine's matter; nothing in here knows an engine.
"""
