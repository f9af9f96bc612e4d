"""DataFrames of a user's own: whether they are events is told when they are given, not in the first batch."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from ps2stream.model.events import check_columns
from ps2stream.model.schemas import EVENTS


def check_events(events: DataFrame) -> None:
    """Raise SchemaError unless a DataFrame has the columns of EVENTS."""
    check_schema(events.schema)


def check_schema(schema: StructType) -> None:
    """Raise SchemaError unless the columns of EVENTS are there, of types that can be cast; others may be."""
    fields = [(field.name, _arrow_type(field.dataType)) for field in schema]
    check_columns(pa.schema(fields), EVENTS, "the DataFrame of events")


def _arrow_type(spark_type: DataType) -> pa.DataType:
    try:
        return to_arrow_type(spark_type)
    except PySparkException:  # intervals and the like, which Arrow or PySpark cannot carry over
        return pa.struct([pa.field(spark_type.simpleString(), pa.null())])
