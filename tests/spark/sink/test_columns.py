"""The columns of records: checked in the words of Spark's connector, taken apart by topic."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from mainstem.spark.sink.columns import Columns, check_columns, rows_by_topic
from mainstem.spark.sink.errors import SinkError, SinkSchemaError

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_all_columns_are_found_wherever_they_are() -> None:
    found = check_columns(
        schema(
            extra=LongType(),
            headers=HEADERS,
            partition=IntegerType(),
            value=StringType(),
            key=BinaryType(),
            topic=StringType(),
        ),
        None,
    )
    assert found == Columns(topic=5, key=4, value=3, headers=1, partition=2)


def test_the_option_is_stronger_than_the_column_topic() -> None:
    assert check_columns(schema(value=StringType(), topic=LongType()), "t").topic == -1


@pytest.mark.parametrize(
    ("columns", "topic", "words"),
    [
        ({"value": BinaryType()}, None, "topic option required when no 'topic' attribute is present"),
        ({"Value": BinaryType()}, "t", "Required attribute 'value' not found; did you mean Value?"),
        ({"key": StringType()}, "t", "Required attribute 'value' not found"),
        (
            {"value": LongType()},
            "t",
            "value attribute unsupported type bigint. value must be a(n) string or binary",
        ),
        ({"value": StringType(), "key": IntegerType()}, "t", "key attribute unsupported type int."),
        ({"value": StringType(), "topic": BinaryType()}, None, "topic must be a(n) string"),
        ({"value": StringType(), "partition": LongType()}, "t", "partition must be a(n) int"),
        (
            {"value": StringType(), "headers": ArrayType(StringType())},
            "t",
            "headers attribute unsupported type array<string>. "
            "headers must be a(n) array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_wrong_columns_are_refused(columns: dict[str, DataType], topic: str | None, words: str) -> None:
    with pytest.raises(SinkSchemaError) as refusal:
        check_columns(schema(**columns), topic)
    assert words in str(refusal.value)


def test_rows_are_parted_by_topic_and_keep_their_order() -> None:
    table = pa.table({"value": ["1", "2", "3", "4"], "topic": ["b", "a", "b", "a"]})
    columns = check_columns(schema(value=StringType(), topic=StringType()), None)
    found = {topic: rows.value.to_pylist() for topic, rows in rows_by_topic(table, columns, None)}
    assert found == {"b": [b"1", b"3"], "a": [b"2", b"4"]}


def test_a_null_topic_is_an_error() -> None:
    table = pa.table({"value": ["1", "2"], "topic": ["b", None]})
    columns = check_columns(schema(value=StringType(), topic=StringType()), None)
    with pytest.raises(SinkError, match="null topic present in the data"):
        rows_by_topic(table, columns, None)


def test_two_columns_of_one_name_are_refused() -> None:
    twice = StructType([StructField("value", StringType()), StructField("value", BinaryType())])
    with pytest.raises(SinkSchemaError, match=r"there are two columns value, .* leave one out"):
        check_columns(twice, "t")


@pytest.mark.parametrize("item", [{"key": None, "value": b"x"}, None])
def test_a_header_without_a_key_is_an_error_that_names_the_column(item: object) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    good = {"key": "a", "value": None}
    table = pa.table({"value": ["1", "2", "3"], "headers": pa.array([None, [good], [good, item]], headers)})
    columns = check_columns(schema(value=StringType(), headers=HEADERS), "t")
    with pytest.raises(
        SinkError, match=r"the column headers has a header without a key, in row 2.*\['a', None\]"
    ):
        rows_by_topic(table, columns, "t")
    rows_by_topic(table.slice(0, 2), columns, "t")


def test_long_offsets_of_arrow_are_taken() -> None:
    table = pa.table(
        {"key": pa.array(["k"], pa.large_string()), "value": pa.array([b"v"], pa.large_binary())}
    )
    columns = check_columns(schema(key=StringType(), value=BinaryType()), "t")
    ((_, rows),) = rows_by_topic(table, columns, "t")
    assert rows.key is not None
    assert (rows.key.to_pylist(), rows.value.to_pylist()) == ([b"k"], [b"v"])
