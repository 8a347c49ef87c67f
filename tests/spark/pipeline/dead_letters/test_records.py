"""A dead letter is the record as it was, with headers that say why it is one."""

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline.dead_letters.records import dead_letter_records
from tests.spark.pipeline.sources.test_topic import source_of, staged

pytestmark = pytest.mark.peer


def test_a_dead_letter_is_the_record_with_headers_that_say_why(spark: SparkSession) -> None:
    bad = staged(spark, [b"{bad"], source_of("id BIGINT")).bad()
    (letter,) = dead_letter_records(bad, "shop", "orders").collect()
    assert (letter.key, letter.value) == (b"k", b"{bad")
    headers = {header.key: bytes(header.value).decode() for header in letter.headers}
    assert headers["mainstem.dead-letter.step"] == "orders.decode"
    assert headers["mainstem.dead-letter.reason"].startswith("not JSON")
    assert (headers["mainstem.dead-letter.topic"], headers["mainstem.dead-letter.offset"]) == ("orders", "0")
    assert headers["mainstem.dead-letter.timestamp"] == "1769860800000"
