"""What does a job remember, and what is left of it after a crash?

Start with ``state.py``: it puts the parts together. Two kinds of things are kept.

In a *store* (``store/``), what has to outlive the job's processes, and later its hosts:

    job.json          job_file.py    the settings that all else depends on, and the name of the job
    plans/            plans.py       the routing plans that are or will be in use; the log says which are
    log/              registry/log   the subscription log: with the stream itself, the only truth
    ledger.json       ledger.py      which events the newest batch has, what is decided, what is finished
    adjustments/      audit.py       what load adjustment did, and why
    status.json       mailbox.py     what the job is like now: the loads of workers
    board.json        mailbox.py     ... and what all roles measure
    requests/         mailbox.py     what others ask it to do
    epochs/           epochs.py      which driver may write, where drivers on several hosts might (lease.py)

On the *host* (``host_files.py``), what only makes sense there and can be made again:

    index/            caches of the log, in mapped files: registry, routing, worker-000 ... (worker_home.py)
    checkpoint/       Spark's offsets, where the stream is a DataFrame of the user's own
    spool/            events of a batch that do not come from a journal
    lock              held by the running job (job_lock.py)

and, where the store is elsewhere, beside the directories of all such states of the host:

    blobs/            segments, snapshots and plans of epochs, which never change (store/host_cache.py)

Where a state is beside the journal and the sink of its job says ``home_layout.py``.

Crash rules. One process writes: on one host the one that holds the lock, on several the one with the newest
epoch, in files of its own (``epochs.py`` has the argument). It settles which events a batch has
(``Ledger.begin``) and decides on it (``Ledger.decide``), the only steps that cannot be taken back, before any
worker sees its updates; when all matches are in the sink it notes that (``Ledger.finish``). A batch that dies
in between runs again: with the same events, and once decided neither adjusted nor decided again; everything
else about it is a function of the log and of the events.

The registrar's indexes are built anew when a job starts. A worker's index is brought up to date where a task
needs it (``mapped_host.py``). It carries a mark: up to which batch it has the log, or none while somebody
changes it. One without a mark (its process was killed), with one of another boot of the host (pages may not
have reached the disk), with a file cut short, or older than the newest snapshot is built again from the log.
"""
