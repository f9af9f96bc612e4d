"""Engines: who calls the roles, in which process, and when.

    inline          all roles in this process, indexes on the heap, nothing durable: tests, `match`
    durable_job     the life of a batch that survives crashes; no engine in it
    batch_tasks     what it asks of an engine: the contract
    batch_notes     what it notes of batches, and when
    log_snapshots   when a snapshot replaces its log, and who writes it
    load_watch      what batches show of the loads, and when that is told
    local_tasks     the roles of a durable job in this process
    embedded        the stream of a journal with them: `run --engine inline`
    spark/          the roles as tasks of Spark: `run`; imports PySpark
    stream_start    how a job is restored from its state
    held_state      the state of a stream, while one driver holds it
    batches         which events a batch has
    batch_loop      what takes one batch after the other, in the background
    live_stream     what those who watch a stream need of it
    batch_tally, meter  what a running stream reports
    replay          an event log through the inline engine, as fast as it goes
    tally           counts of all batches, and the report made of them
    kernel_warmup   compile or load every kernel before the first event

All give the same matches for the same events: one set of laws (tests/laws) runs on them. Open ``inline``
first; its ``process`` is the life of a batch on one screen. Then ``durable_job``.
"""
