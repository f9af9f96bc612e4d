"""The benchmark of spatio-textual publish/subscribe: every figure of the paper, and some of our own.

    ps2stream-bench run baselines --scale tiny
    ps2stream-bench run all --scale small
    ps2stream-bench report --out docs/paper

The data flows one way, and what is measured is never mixed with what is made of it:

    workloads/   publications like tweets of the US and the UK; Q1, Q2, Q3 and drifting streams of events
    engines.py   PS2Stream as it is measured: inline engines that take turns on one stream
    contest.py   engines with the plans of several partitioners against each other
    latency.py   events that arrive by a schedule, whether the engine keeps up or not;
                 microbatch_latency.py: the same for a stream on Spark
    peers/       what people use instead, on the same events
    cluster/     drivers in beds of the test bed, and what every process and cable there did
    figures/     a module for each figure: its cases at every scale, how one is measured, what the page says
    runner.py    runs the cases that are not measured yet, in a fixed random order
    results.py   raw rows in Parquet: every repetition, with commit, machine, settings and seed
    metrics.py   medians, intervals and ratios of rows
    leads.py     how far partitioners are ahead of each other, workload by workload
    plots.py, report.py   the pages of docs/paper, made of rows and nothing else
    micro/       single structures and kernels: GI2 against a naive version, the journal

A figure is trusted for its ratios: contenders are measured in turns, in one process, on one machine, so
that what else happens there hits all of them alike.
"""
