"""Who counts as in sync for Kafka's tools, and who for a producer."""

import pytest

from mainstem.cli.clusters.partition_health import PartitionHealth


@pytest.mark.parametrize(
    ("replicas", "isr", "min_isr", "is_under", "refuses"),
    [
        ([1, 2, 3], [1, 2], 2, False, False),
        ([1, 2, 3], [1], 2, True, True),
        ([1, 2], [1], 3, True, True),
        ([1, 2], [1, 2], 3, True, False),
        ([1], [1], 2, True, False),
    ],
)
def test_kafkas_tools_go_by_the_setting_and_brokers_by_what_there_is(
    replicas: list[int], isr: list[int], min_isr: int, is_under: bool, refuses: bool
) -> None:
    part = PartitionHealth("orders", 0, 1, replicas, isr, min_isr)
    assert (part.is_under_min_isr, part.refuses_acks_all) == (is_under, refuses)


def test_a_partition_that_nobody_leads_takes_nothing() -> None:
    part = PartitionHealth("orders", 0, -1, [1, 2], [1, 2], 1)
    assert (part.is_under_min_isr, part.refuses_acks_all) == (True, True)
