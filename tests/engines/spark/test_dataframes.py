"""Whether a DataFrame holds events is told by its schema."""

from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from ps2stream.engines.spark.dataframes import check_schema
from ps2stream.errors import SchemaError
from ps2stream.model.schemas import EVENTS, EVENTS_WITHOUT_SEQ

GOOD = from_arrow_schema(EVENTS)


def _replaced(name: str, kind: DataType) -> StructType:
    changed = StructType()
    for field in GOOD:
        changed.add(field.name, kind if field.name == name else field.dataType)
    return changed


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("seq", IntegerType()),
        ("seq", ShortType()),
        ("lat", FloatType()),
        ("lat", LongType()),
        ("max_lon", IntegerType()),
        ("expression", NullType()),
    ],
)
def test_types_that_a_table_may_have_are_fine(name: str, kind: DataType) -> None:
    check_schema(GOOD)
    check_schema(_replaced(name, kind))


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("lat", StringType(), "column 'lat' must be double; got string"),
        ("lat", DecimalType(9, 6), r"column 'lat' must be double; got decimal128\(9, 6\)"),
        ("seq", DoubleType(), "column 'seq' must be int64; got double"),
        ("id", LongType(), "column 'id' must be string; got int64"),
        ("text", ArrayType(StringType()), "column 'text' must be string; got list<"),
        ("text", YearMonthIntervalType(), "column 'text' must be string; got .*interval"),
    ],
)
def test_a_column_of_another_type_is_named(name: str, kind: DataType, message: str) -> None:
    with pytest.raises(SchemaError, match=f"^the DataFrame of events: {message}"):
        check_schema(_replaced(name, kind))


@pytest.mark.parametrize("name", EVENTS_WITHOUT_SEQ.names)
def test_a_missing_column_is_named(name: str) -> None:
    without = StructType([field for field in GOOD if field.name != name])
    with pytest.raises(SchemaError, match=rf"column '{name}' \(\w+\) is missing; found \["):
        check_schema(without)


def test_events_may_come_without_seq_but_not_with_one_that_is_spelled_otherwise() -> None:
    without = [field for field in GOOD if field.name != "seq"]
    check_schema(StructType(without))
    for name in ("Seq", "SEQ"):
        with pytest.raises(SchemaError, match=f"column 'seq' must be spelled so; got '{name}'"):
            check_schema(StructType([*without, StructField(name, LongType())]))


def test_a_column_must_be_there_once_and_other_columns_do_not_matter() -> None:
    check_schema(StructType(GOOD.fields).add("extra", VariantType()).add("since", YearMonthIntervalType()))
    with pytest.raises(SchemaError, match="column 'text' must be there once; got it 2 times"):
        check_schema(StructType(GOOD.fields).add("text", StringType()))
