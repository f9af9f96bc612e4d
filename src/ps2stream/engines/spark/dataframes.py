"""DataFrames of a user's own: whether they are events is told when they are given, not in the first batch."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from ps2stream.errors import SchemaError
from ps2stream.model.events import check_columns
from ps2stream.model.schemas import EVENTS, EVENTS_WITHOUT_SEQ

_SEQ = "seq"
_WHERE = "the DataFrame of events"


def check_events(events: DataFrame) -> None:
    """Raise SchemaError unless a DataFrame has the columns of EVENTS; ``seq`` may be missing."""
    check_schema(events.schema)


def check_schema(schema: StructType) -> None:
    """Raise SchemaError unless the columns are there, of types that can be cast; others may be there, too."""
    fields = [(field.name, _arrow_type(field.dataType)) for field in schema]
    wanted = EVENTS if _SEQ in schema.names else EVENTS_WITHOUT_SEQ
    check_columns(pa.schema(fields), wanted, _WHERE)
    for name in schema.names:
        # Spark would take it for the same name. Without a word, the order that it holds would be lost.
        if name.lower() == _SEQ != name:
            raise SchemaError(f"{_WHERE}: column {_SEQ!r} must be spelled so; got {name!r}")


def has_seq(events: DataFrame) -> bool:
    """Say whether events bring their order with them; else the job numbers them as they arrive."""
    return _SEQ in events.columns


def _arrow_type(spark_type: DataType) -> pa.DataType:
    try:
        return to_arrow_type(spark_type)
    except PySparkException:  # intervals and the like, which Arrow or PySpark cannot carry over
        return pa.struct([pa.field(spark_type.simpleString(), pa.null())])
