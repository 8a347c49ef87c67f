"""What the tests of the pipeline share: a Spark for each worker of the test run, made when it is needed."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import spark_session
from tests.wire.token_logins import TokenEndpoint, serve_tokens


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark with two slots, Spark's own Kafka connector, and filter push-down enabled."""
    session = spark_session()
    yield session
    session.stop()


@pytest.fixture
def token_endpoint() -> Iterator[str]:
    """Where a client with the right secret gets a token."""
    with serve_tokens(TokenEndpoint()) as endpoint:
        yield endpoint.url
