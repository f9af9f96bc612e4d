"""A shuffle whose partitions stay on the hosts they were first on.

Spark places the tasks behind a shuffle anew for every job, and a worker's index is on one host. A persisted
RDD stays where it was computed, though, and tasks prefer to run where their input is persisted. So each
worker has an *anchor*: a partition of a persisted RDD with one element, which says whose it is. The packets
of a batch are shuffled by the partitioner of the anchors, and the union of two RDDs with the same partitioner
has the same partitions, each with the preferred host of the anchor: the packets come to it. That adds no
stage and one element a partition. When a host is gone its anchors are computed again elsewhere, and stay
there.

PySpark forgets the partitioner of what it shuffles; one level below, its pairs of keys and packed values
still have it. What is used there has been the same since Spark 1.0, and a test on a cluster holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import RDD, SparkContext, StorageLevel
from pyspark.serializers import CPickleSerializer, pack_long

from ps2stream.roles.packets import Packet, PacketKind

#: A packet and the number of the worker it is for.
Sent = tuple[int, Packet]

_SERIALIZER = CPickleSerializer()


class PinnedShuffle:
    """Send packets to workers, each of which stays where it is."""

    def __init__(self, context: SparkContext, n_workers: int) -> None:
        self._context = context
        # One for all shuffles: RDDs are joined partition by partition only if their partitioners are equal.
        self._partitioner: Any = context._jvm.PythonPartitioner(n_workers, id(self))  # type: ignore[union-attr]
        anchor = Packet(PacketKind.ANCHOR, b"")
        anchors = context.parallelize([(worker, anchor) for worker in range(n_workers)], n_workers)
        self._anchors: Any = self._shuffled(anchors)
        self._anchors.persist(context._getJavaStorageLevel(StorageLevel.MEMORY_ONLY))

    def send(self, packets: RDD[Sent]) -> RDD[Sent]:
        """Return the packets with a partition for each worker; its anchor is among them."""
        joined = self._anchors.union(self._shuffled(packets))
        values = self._context._jvm.PythonRDD.valueOfPair(joined)  # type: ignore[union-attr]
        return RDD(values, self._context, _SERIALIZER)

    def _shuffled(self, packets: RDD[Sent]) -> Any:
        packed: RDD[bytes] = packets.mapPartitions(_packed, preservesPartitioning=True)
        packed._bypass_serializer = True  # type: ignore[attr-defined]
        pairs = self._context._jvm.PairwiseRDD(packed._jrdd.rdd()).asJavaPairRDD()  # type: ignore[union-attr]
        return pairs.partitionBy(self._partitioner)


def _packed(packets: Iterable[Sent]) -> Iterator[bytes]:
    """Write what the JVM shuffles: the number of a worker, then a packet for it."""
    for worker, packet in packets:
        yield pack_long(worker)  # type: ignore[no-untyped-call]
        yield _SERIALIZER.dumps((worker, packet))  # type: ignore[no-untyped-call]
