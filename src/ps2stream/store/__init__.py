"""Where does a job keep what has to outlive its processes?

In a :class:`~ps2stream.store.contract.Store`: blobs by key, and nothing else. Start with ``contract.py``: it
says all that a store promises, and is small on purpose, so that a directory, an object store and a dictionary
can all keep it. ``directory.py`` has files of one host, ``object_store.py`` a bucket that hosts share,
``memory.py`` a dictionary for tests; ``urls.py`` says which of them a path or a URL means. ``host_cache.py``
keeps on a host what a store elsewhere has once and for all, and ``traffic.py`` counts what object stores are
asked.

    subscription log   plans   ledger   job file   audit log   status, requests   sink files

Modules get a store, or a part of one (``store.under("log")``), and know keys only: where the bytes are is
known here. What must lie on the disk of the host that uses it (mapped indexes, Spark's checkpoint, locks, the
spool) is no blob and lies elsewhere: ``state/host_files.py``.

Crash rules, the same for every implementation:

- A blob is whole or not there. ``put`` and ``writer`` leave the old one or the new one, never a part.
- When a call returns, what it wrote has survived: a kill, and where the medium can promise it, a power cut.
- ``put_if_absent`` has one winner, between threads, processes and hosts.
- What a killed writer left is never listed and never read; ``sweep`` removes it.

- A listing need not be complete while others write: nothing is decided by one where hosts share a store.
  What has to be found is found by its key (the log's manifest, the next epoch).

The contract tests (``tests/store/test_contract.py``) run on every implementation.
"""
