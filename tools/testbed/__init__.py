"""A cluster on one machine, for tests: hosts, a Spark cluster, an object store and Kafka.

A *bed* is what one ``./dev cluster run`` makes: a bridge, and on it *members*, each a network namespace
with an address of its own: ``h1``, ``h2``, ... (hosts, with a Spark worker), ``master`` (Spark's), ``store``
(an S3 server) and ``kafka``. The command that a bed is made for is Spark's driver; it runs outside of all
namespaces and reaches the members by the bridge.

A host has a disk of its own: its processes see a root directory that is made of the system, the environment
and the checkout, all read-only, and of directories that no other host sees (``disk_view.py``). So state that
is shared by accident is not there, and whoever looks for it fails.

Nothing is remembered in memory alone. A bed has a directory with a lock, which its launcher holds, and all
its processes carry its name in their environment: whoever finds a directory whose lock is free can remove
the whole bed (``leftovers.py``), whatever happened to the launcher. The file ``cluster.json`` in it names all
members; commands for faults (``faults.py``) read it, and so may tests.
"""
