"""What a broker for tests is told beyond Kafka's defaults."""

import pytest

from mainstem.testing.settings import SettingValue, setting_texts

DELAY = "group.initial.rebalance.delay.ms"


@pytest.mark.parametrize(("given", "delay"), [({}, "0"), ({DELAY: 500}, "500"), ({"num.partitions": 2}, "0")])
def test_groups_do_not_wait_unless_told_to(given: dict[str, SettingValue], delay: str) -> None:
    assert setting_texts(given)[DELAY] == delay


def test_values_are_spelled_as_in_a_properties_file() -> None:
    settings = setting_texts({"auto.create.topics.enable": False, "num.partitions": 3})
    assert settings["auto.create.topics.enable"] == "false"
    assert settings["num.partitions"] == "3"
