"""A damaged journal: what is lost is told, and nothing else is lost."""

from __future__ import annotations

import contextlib
import sqlite3

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from engines.spark.processes import journal_events
from laws.engines import JobHome, sorted_outcome
from ps2stream.config import Settings
from ps2stream.journal import Journal
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=2, n_dispatchers=2, batch_events=150)
_POSITION = 4


def damage(job_home: JobHome, assignment: str) -> None:
    with contextlib.closing(sqlite3.connect(job_home.journal / "journal.sqlite")) as connection:
        connection.execute(f"UPDATE packets SET {assignment} WHERE position = ?", (_POSITION,))
        connection.commit()


@pytest.mark.parametrize(
    "assignment",
    [
        "publications = zeroblob(length(publications))",
        pytest.param("publications = substr(publications, 1, 100)", marks=pytest.mark.slow),
        "updates = 'not even bytes'",
        pytest.param("updates = NULL, publications = NULL", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_packet_is_one_rejected_record_and_all_else_is_delivered(
    spark: SparkSession, job_home: JobHome, assignment: str
) -> None:
    late = job_home.publish(random_events(400, seed=71), packet_events=30)
    with Journal.open(job_home.journal) as journal:
        (packet,) = journal.read(_POSITION - 1, _POSITION)
    assert packet.updates
    assert packet.publications
    damage(job_home, assignment)
    # Reading leaves out the damaged half, so the oracle sees what the engine can see.
    expected = sorted_outcome(oracle.run(journal_events(job_home)))
    job_home.drain(spark, SETTINGS)
    delivered = job_home.outcome(late)
    assert delivered.matches == expected.matches
    lost = oracle.Rejection(packet.first_seq, None, None)
    assert lost in delivered.rejected
    delivered.rejected.remove(lost)
    assert delivered.rejected == sorted_outcome(oracle.Deliveries([], expected.rejected + late)).rejected
    reasons = pa.Table.from_pylist(job_home.rejected_rows()).column("reason").to_pylist()
    assert sum(f"packet {_POSITION} of the journal is damaged" in reason for reason in reasons) == 1
