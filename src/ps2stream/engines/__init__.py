"""Engines: who calls the roles, in which process, and when.

    inline          all roles in this process, indexes on the heap: tests, benchmarks, small use
    spark/          micro-batches as jobs of Spark, indexes in mapped files; imports PySpark
    replay          an event log through the inline engine, as fast as it goes
    tally           counts of all batches, and the report made of them
    kernel_warmup   compile or load every kernel before the first event

Both engines give the same matches for the same events: one set of laws (tests/laws) runs on both. Open
``inline`` first; its ``process`` is the life of a batch on one screen.
"""
