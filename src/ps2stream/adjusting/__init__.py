"""Adjusting: watch the loads of a running stream and move load between workers (Sec. V).

The algorithms are in ``ps2stream.balance`` and know nothing of a stream. Here is who feeds them, and who
carries out what they decide:

    controller       told about every batch, asked before every batch; open it first
    recent_sample    a sample of the newest publications, and what is in a cell
    repartitioning   would another plan serve the stream better? Made from one half of a sample, judged on
                     the other
    disk_sample      the same sample from what a job leaves on disk, for those who cannot ask the job
    status           the loads of workers and their busiest cells, as plain values

An adjustment becomes rows of the subscription log (``roles.migration``) and a new plan, which take effect
together between two batches. The controller never looks into a worker: it asks the worker's host.
"""
