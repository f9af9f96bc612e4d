"""What a PySpark user would write instead: explode to (cell, term), join, filter, in Spark SQL alone.

A clause is kept under its rarest term only, and a publication looked up under all of its terms; a region is
kept under all cells that it touches, a publication looked up under its one cell.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from ps2stream.matcher import event_table
from ps2stream.model.publications import Publication
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription
from ps2stream_bench.peers.boxes_and_clauses import clause_table
from ps2stream_bench.peers.contract import PAIRS, Restful

#: Sides of cells, in degrees. In larger ones a clause is kept fewer times, but more of them are not meant.
#: With 100,000 Q1 subscriptions 0.25 gave a quarter more publications/s than 0.5, and 0.5 more than 1.0.
CELL_DEGREES = 0.25

_KEYS = ("cell_x", "cell_y", "term")

_SETTINGS = {
    # A session of PS2Stream's own is set for packets: few and large rows. Here they are many and small.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.adaptive.enabled": "true",
}


class SparkSql(Restful):
    """Join publications with clauses by cell and term."""

    name = "Spark SQL"

    def __init__(
        self, spark: SparkSession, stop_words: Iterable[str] = (), cell_degrees: float = CELL_DEGREES
    ) -> None:
        # A session beside the one given, on the same context: what is set here touches nobody else.
        self._spark = spark.newSession()
        self._n_cores = spark.sparkContext.defaultParallelism
        settings = {**_SETTINGS, "spark.sql.shuffle.partitions": str(self._n_cores)}
        for name, value in settings.items():
            self._spark.conf.set(name, value)
        self._stop_words = tuple(stop_words)
        self._cell_degrees = cell_degrees
        self._clauses: DataFrame | None = None
        self._warm_up()

    def load(self, subscriptions: pa.Table) -> None:
        """Explode clauses to cells and keep them in memory, one partition a core."""
        rows = self._spark.createDataFrame(clause_table(subscriptions, self._stop_words))
        exploded = by_cell_and_term(rows, self._cell_degrees)
        self._clauses = exploded.repartition(self._n_cores, *_KEYS).cache()
        self._clauses.count()

    def match(self, publications: pa.Table) -> pa.Table:
        assert self._clauses is not None
        rows = self._spark.createDataFrame(publications.select(["seq", "lon", "lat", "text"]))
        places = looked_up(rows, self._stop_words, self._cell_degrees)
        # Publications are the small side; sent to the clauses, nothing has to be shuffled.
        pairs: pa.Table = pairs_by_join(self._clauses, F.broadcast(places)).toArrow()
        return pairs.cast(PAIRS)

    def index_bytes(self) -> int | None:
        # PySpark has no public way to ask for the size of a cached DataFrame.
        return None

    def close(self) -> None:
        if self._clauses is not None:
            self._clauses.unpersist(blocking=True)
            self._clauses = None

    def _warm_up(self) -> None:
        """Match once, so that Java has loaded its classes and Spark has compiled the queries."""
        self.load(event_table([Subscription("a", "warm AND up", Region(0.0, 0.0, 1.0, 1.0))]))
        self.match(event_table([Publication("p", "warm up", 0.5, 0.5)], first_seq=2))
        self.close()


def by_cell_and_term(clauses: DataFrame, cell_degrees: float = CELL_DEGREES) -> DataFrame:
    """Explode clauses (schema CLAUSES) to a row for each cell of their region, with their rarest term."""
    columns = (
        "subscription_seq",
        "min_lon",
        "min_lat",
        "max_lon",
        "max_lat",
        "term",
        F.array_remove("terms", F.col("term")).alias("others"),
        F.explode(F.sequence(_cell("min_lon", cell_degrees), _cell("max_lon", cell_degrees))).alias("cell_x"),
        "cell_y",
    )
    cell_ys = F.explode(F.sequence(_cell("min_lat", cell_degrees), _cell("max_lat", cell_degrees)))
    return _with_rarest_term(clauses).withColumn("cell_y", cell_ys).select(*columns)


def looked_up(
    publications: DataFrame, stop_words: Iterable[str], cell_degrees: float = CELL_DEGREES
) -> DataFrame:
    """Explode publications (seq, lon, lat, text) to a row for each of their terms, with their cell."""
    stopped = F.array(*map(F.lit, stop_words)).cast("array<string>")
    return publications.select(
        F.col("seq").alias("publication_seq"),
        "lon",
        "lat",
        _cell("lon", cell_degrees).alias("cell_x"),
        _cell("lat", cell_degrees).alias("cell_y"),
        # Terms come out distinct.
        F.array_except(F.split(F.lower("text"), r"\W+"), stopped).alias("text_terms"),
    ).withColumn("term", F.explode("text_terms"))


def pairs_by_join(clauses: DataFrame, places: DataFrame) -> DataFrame:
    """Join what was exploded, keep what matches (columns of PAIRS), each pair once."""
    found = clauses.join(places, list(_KEYS)).where(
        F.col("lon").between(F.col("min_lon"), F.col("max_lon"))
        & F.col("lat").between(F.col("min_lat"), F.col("max_lat"))
        & (F.size(F.array_except("others", "text_terms")) == 0)
    )
    return found.select(*PAIRS.names).distinct()


def _cell(coordinate: str, cell_degrees: float) -> Column:
    return F.floor(F.col(coordinate) / cell_degrees)


def _with_rarest_term(clauses: DataFrame) -> DataFrame:
    """Add to each clause its term that the fewest clauses have: subscribers ask for what is written."""
    terms = clauses.withColumn("row", F.monotonically_increasing_id()).withColumn("term", F.explode("terms"))
    n_clauses = terms.groupBy("term").agg(F.count("*").alias("n"))
    kept = ("subscription_seq", "min_lon", "min_lat", "max_lon", "max_lat", "terms")
    first = [F.first(name).alias(name) for name in kept]
    counted = terms.join(F.broadcast(n_clauses), "term")
    return counted.groupBy("row").agg(F.min_by("term", F.struct("n", "term")).alias("term"), *first)
