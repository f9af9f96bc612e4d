"""PostgreSQL with PostGIS and GIN: clauses in a table with an index on regions and one on terms.

The planner may use either index or both. On our workloads it goes from publications to regions, in several
processes at once, and compares terms last.

It is driven by psql, with files in between, as a batch job would; there is no Python driver to wait for.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from ps2stream_bench.peers.boxes_and_clauses import clause_table
from ps2stream_bench.peers.contract import PAIRS, Restful
from ps2stream_bench.peers.postgres_server import PostgresServer

_LOAD = """
CREATE EXTENSION postgis;
CREATE UNLOGGED TABLE clauses (
    subscription_seq bigint NOT NULL,
    min_lon double precision NOT NULL,
    min_lat double precision NOT NULL,
    max_lon double precision NOT NULL,
    max_lat double precision NOT NULL,
    terms text[] NOT NULL,
    region geometry(Polygon, 4326)
        GENERATED ALWAYS AS (ST_MakeEnvelope(min_lon, min_lat, max_lon, max_lat, 4326)) STORED
);
COPY clauses (subscription_seq, min_lon, min_lat, max_lon, max_lat, terms) FROM '{file}' (FORMAT csv, HEADER);
CREATE INDEX ON clauses USING gist (region);
CREATE INDEX ON clauses USING gin (terms);
VACUUM ANALYZE clauses;
"""

# No temporary tables: only one process may read those, and a parallel query has several.
_PUBLISH = """
DROP TABLE IF EXISTS texts, publications;
CREATE UNLOGGED TABLE texts (seq bigint, lon double precision, lat double precision, text text);
COPY texts FROM '{file}' (FORMAT csv, HEADER);
CREATE UNLOGGED TABLE publications AS
    SELECT seq, lon, lat, ST_SetSRID(ST_Point(lon, lat), 4326) AS place,
           regexp_split_to_array(lower(text), '\\W+') AS terms
    FROM texts;
ANALYZE publications;
"""

# The index compares boxes rounded outwards to single precision. Comparing the corners again is exact, also
# for regions that are lines or points, and costs less than ST_Intersects.
_MATCH = """
SELECT DISTINCT c.subscription_seq, p.seq AS publication_seq
FROM publications p JOIN clauses c
    ON c.region && p.place
    AND p.lon BETWEEN c.min_lon AND c.max_lon
    AND p.lat BETWEEN c.min_lat AND c.max_lat
    AND c.terms <@ p.terms
"""


class PostgreSql(Restful):
    """Match by one join on a server that this peer starts and stops."""

    name = "PostgreSQL + PostGIS"

    def __init__(self, stop_words: Iterable[str] = ()) -> None:
        # Stop words leave the clauses. That a text still has them does no harm: no clause asks for them.
        self._stop_words = tuple(stop_words)
        self._server = PostgresServer()

    def load(self, subscriptions: pa.Table) -> None:
        clauses = clause_table(subscriptions, self._stop_words)
        literals = _array_literals(clauses["terms"].combine_chunks())
        at = clauses.schema.get_field_index("terms")
        self._server.run(_LOAD.format(file=self._write("clauses", clauses.set_column(at, "terms", literals))))

    def match(self, publications: pa.Table) -> pa.Table:
        file = self._write("publications", publications.select(["seq", "lon", "lat", "text"]))
        found = self._server.run(
            f"{_PUBLISH.format(file=file)} COPY ({_MATCH}) TO STDOUT (FORMAT csv, HEADER);"
        )
        types = csv.ConvertOptions(column_types=PAIRS)
        return csv.read_csv(io.BytesIO(found), convert_options=types)

    def index_bytes(self) -> int | None:
        return int(self._server.run("SELECT pg_total_relation_size('clauses');"))

    def close(self) -> None:
        self._server.close()

    def _write(self, name: str, table: pa.Table) -> str:
        path = self._server.directory / f"{name}.csv"
        csv.write_csv(table, path)
        path.chmod(0o644)  # the server may be another user
        return str(path)


def _array_literals(terms: pa.ListArray) -> pa.Array:
    """Write arrays as PostgreSQL reads them; quoted, for null is a word too."""
    return pc.binary_join_element_wise('{"', pc.binary_join(terms, '","'), '"}', "")
