"""What the tests of the pipeline share: a Spark for each worker of the test run, made when it is needed."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark with two slots, Spark's own Kafka connector, and filter push-down enabled."""
    session = spark_session()
    yield session
    session.stop()
