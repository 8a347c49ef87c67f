"""The alert rules and the dashboard: queries that Prometheus understands, about metrics that are there.

A broker is driven until every metric has samples, and each name and label in a query is looked up among them.
With `promtool` on the path, the rules and a scrape are checked by it as well.
"""

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser
import pytest
import yaml
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from mainstem.testing import Broker

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "mainstem-alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "mainstem.json"
PAGE = ROOT / "docs" / "metrics.md"
WANTED_ALERTS = {
    "MainstemConsumerLagGrowing",
    "MainstemTransactionStuck",
    "MainstemDiskFilling",
    "MainstemEventLoopStalled",
    "MainstemLogDirOffline",
}
# Prometheus itself adds these to every sample, and makes `up`.
_ADDED_LABELS = {"job", "instance", "__name__"}
_VARIABLES = {"$__rate_interval": "5m", "$job": "mainstem", "$instance": ".*", "$topic": ".*", "$group": ".*"}


class Scraped(NamedTuple):
    """The labels of each sample's name, and the names of the families."""

    text: str
    labels: dict[str, set[str]]
    families: set[str]


@pytest.fixture(scope="module")
def scraped() -> Scraped:
    """A scrape of a broker that has seen a topic, a group with lag, a transaction that is still open, and a
    request that it refused.
    """
    with Broker({"mainstem.metrics.port": 0}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("topic", b"value")
        producer.flush()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("topic", 0, 0)], asynchronous=False)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
            admin.create_topics([NewTopic("topic")])["topic"].result()
        with urllib.request.urlopen(broker.metrics_url) as answer:
            text = answer.read().decode()
        consumer.close()
        producer.abort_transaction()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    labels: dict[str, set[str]] = {"up": set()}
    for family in families.values():
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    names = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
    return Scraped(text, labels, names)


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    found = [rule["expr"] for rule in rules()]
    for panel in panels():
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in _VARIABLES.items():
                text = text.replace(name, value)
            found.append(text)
    return found


def test_the_rules_are_complete() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    assert set(names) >= WANTED_ALERTS
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} == set(rule["annotations"])
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert rule["alert"] in PAGE.read_text()


def test_labels_in_annotations_are_labels_of_the_query() -> None:
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        by = [set(match.split(", ")) for match in re.findall(r"by \(([^)]*)\)", rule["expr"])]
        assert not by or used <= set.union(*by), rule["alert"]


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    board = json.loads(DASHBOARD.read_text())
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (column, row)
            for column in range(place["x"], place["x"] + place["w"])
            for row in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_query_parses_and_asks_for_metrics_and_labels_that_are_there(
    query: str, scraped: Scraped
) -> None:
    found: list[str] = []

    def look(part: object) -> bool:
        if isinstance(part, promql_parser.VectorSelector):
            assert part.name is not None
            found.append(part.name)
            known = scraped.labels.get(part.name)
            if known is None:  # nothing went wrong yet, so that there is no sample of it
                assert part.name in scraped.families, part.name
            else:
                assert {matcher.name for matcher in part.matchers.matchers} <= known | _ADDED_LABELS
        elif isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            known = set.union(*(scraped.labels.get(name, set()) for name in names_in(part)))
            assert set(part.modifier.labels) <= known | _ADDED_LABELS, part.modifier.labels
        return True

    promql_parser.walk(promql_parser.parse(query), look)
    assert found


def names_in(expression: Any) -> list[str]:
    names: list[str] = []

    def look(part: object) -> bool:
        if isinstance(part, promql_parser.VectorSelector) and part.name is not None:
            names.append(part.name)
        return True

    promql_parser.walk(expression, look)
    return names


def test_the_page_lists_every_metric_and_no_other(scraped: Scraped) -> None:
    named = set(re.findall(r"`((?:mainstem|process)_[a-z_]+)`", PAGE.read_text()))
    assert named == scraped.families


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_own_tool_has_nothing_to_say(scraped: Scraped) -> None:
    for command in (
        ["check", "rules", str(RULES)],
        ["check", "config", str(RULES.with_name("prometheus.yml"))],
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=scraped.text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
