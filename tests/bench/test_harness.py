"""The harness reads, judges and prints measurements rightly. No timing, no broker."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from bench import procfs
from bench.__main__ import make_plan, parse_arguments
from bench.document import PAGE, begin_of, complete_subjects, end_of, replace_section, write_page
from bench.errors import BenchError
from bench.loads import parse_consumed, parse_produced
from bench.peers import Earlier
from bench.phases import PHASES, SUBJECTS
from bench.phases.model import QUICK
from bench.report import format_number, make_report, markdown_table, text_table
from bench.runner import Plan, Results, alternate
from bench.stats import Metric, Summary, Target, ratio, summarise
from bench.tools import compile_command
from bench.wire import metadata_frame, parse_metadata

PRODUCED = (
    "% 100000 messages produced (102400000 bytes), 100000 delivered (offset 0, 0 failed) in 500ms: "
    "200000 msgs/s and 204.80 MB/s, 0 produce failures, 0 in queue, no compression\n"
)
CONSUMED = "% 100000 messages (102400000 bytes) consumed in 250ms: 400000 msgs/s (409.60 MB/s)\n"


def test_the_producers_summary_is_read() -> None:
    done = parse_produced("% earlier line\n" + PRODUCED, 100_000, 1024)
    assert done.seconds == 0.5
    assert done.megabytes_per_s == pytest.approx(204.8)
    assert done.gigabytes == pytest.approx(0.1024)


def test_the_consumers_summary_is_read() -> None:
    assert parse_consumed(CONSUMED, 100_000, 1024).messages_per_s == 400_000


@pytest.mark.parametrize("output", ["", PRODUCED.replace("100000 delivered", "99999 delivered")])
def test_a_producer_that_lost_messages_is_no_measurement(output: str) -> None:
    with pytest.raises(BenchError):
        parse_produced(output, 100_000, 1024)


def test_a_consumer_that_missed_messages_is_no_measurement() -> None:
    with pytest.raises(BenchError):
        parse_consumed(CONSUMED, 100_001, 1024)


def test_values_are_summarised_by_median_and_spread() -> None:
    assert summarise([3.0, 1.0, 2.0]) == Summary(median=2.0, low=1.0, high=3.0, count=3)
    assert summarise([]) is None
    assert ratio(summarise([4.0]), summarise([2.0])) == 2.0
    assert ratio(summarise([4.0]), None) is None


def test_targets_judge_ratio_or_value() -> None:
    assert Target("ratio_min", 2.0).is_met(value=1.0, ratio=2.0) is True
    assert Target("ratio_max", 0.5).is_met(value=1.0, ratio=0.6) is False
    assert Target("ratio_max", 0.5).is_met(value=1.0, ratio=None) is None
    assert Target("value_max", 10.0).is_met(value=9.0, ratio=None) is True
    assert Target("value_max", 10.0).text("ms") == "<= 10 ms"
    assert Target("ratio_min", 1.2).text("msg/s") == ">= 1.2x"


def test_of_several_targets_all_or_any_have_to_be_met() -> None:
    targets = (Target("value_max", 1.0), Target("ratio_max", 0.5))
    assert Metric("p99", "ms", targets).is_met(value=2.0, ratio=0.4) is False
    assert Metric("p99", "ms", targets, any_target=True).is_met(value=2.0, ratio=0.4) is True
    assert Metric("p99", "ms", targets, any_target=True).is_met(value=2.0, ratio=None) is None
    assert Metric("p99", "ms", targets, any_target=True).is_met(value=1.0, ratio=None) is True
    assert Metric("p99", "ms", targets, any_target=True).target_text() == "<= 1 ms or <= 0.5x"
    assert Metric("p99", "ms").is_met(value=2.0, ratio=0.4) is None


def test_every_repetition_begins_with_the_other_peer() -> None:
    assert alternate(["mainstem", "kafka"], 3) == [
        "mainstem",
        "kafka",
        "kafka",
        "mainstem",
        "mainstem",
        "kafka",
    ]


def test_a_report_has_a_row_for_every_number_and_marks_what_is_met() -> None:
    plan = Plan(phases=[PHASES["startup"]], peers=["mainstem", "kafka"], repeat=3, warmup_s=0, sizes=QUICK)
    results = Results(failures=["memory on kafka: too little"])
    for mainstem_s, kafka_s in ((0.2, 2.0), (0.3, 3.0), (0.4, 2.5)):
        results.add("startup", "mainstem", {"startup_s": mainstem_s})
        results.add("startup", "kafka", {"startup_s": kafka_s})
    report = make_report(plan, results, {"command": "bench/run"})
    (row,) = report["rows"]
    assert row["ratio"] == pytest.approx(0.12)
    assert row["met"] is True
    assert row["peers"]["kafka"]["values"] == [2.0, 3.0, 2.5]
    for table in (text_table(report), markdown_table(report)):
        assert "0.300 (0.200..0.400)" in table
        assert "0.12x" in table
        assert "FAILED memory on kafka: too little" in table


def test_an_earlier_checkout_takes_the_place_of_apache_kafka(tmp_path: Path) -> None:
    plan = make_plan(parse_arguments(["--only", "startup", "--earlier", str(tmp_path)]))
    assert plan.peers == ["mainstem", "earlier"]
    assert isinstance(plan.peer("earlier", tmp_path / "data"), Earlier)
    with pytest.raises(BenchError, match=r"no \./mainstem to start in"):
        plan.peer("earlier", tmp_path / "data").start()
    results = Results()
    results.add("startup", "mainstem", {"startup_s": 0.2})
    results.add("startup", "earlier", {"startup_s": 0.4})
    report = make_report(plan, results, {"command": "bench/run"})
    (row,) = report["rows"]
    assert row["ratio"] == pytest.approx(0.5)
    assert row["target"] == ""
    assert "earlier" in text_table(report)
    assert "Apache Kafka" not in text_table(report)


def test_what_an_earlier_checkout_cannot_be_compared_by_is_refused(tmp_path: Path) -> None:
    for arguments in (["--only", "spark"], ["--only", "metrics_cost"], ["--only", "startup", "--write-docs"]):
        with pytest.raises(BenchError):
            make_plan(parse_arguments([*arguments, "--earlier", str(tmp_path)]))


def test_numbers_are_short() -> None:
    assert [format_number(value) for value in (1234567.8, 12.34, 1.234, 0.1234)] == [
        "1,234,568",
        "12.3",
        "1.23",
        "0.123",
    ]


def test_only_the_marked_section_of_the_page_is_replaced() -> None:
    begin, end = begin_of("groups"), end_of("groups")
    page = f"before\n{begin}\nold\n{end}\nafter\n"
    assert replace_section(page, "groups", "| new |") == f"before\n{begin}\n\n| new |\n\n{end}\nafter\n"
    with pytest.raises(BenchError):
        replace_section("no markers", "groups", "| new |")
    for subject in SUBJECTS:
        assert begin_of(subject) in PAGE.read_text()


def test_a_subject_is_written_only_as_a_whole(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    text = "".join(f"{begin_of(subject)}\n\nold\n\n{end_of(subject)}\n" for subject in SUBJECTS)
    page.write_text(text)
    phases = [*SUBJECTS["groups"], PHASES["startup"]]
    plan = Plan(phases=phases, peers=["mainstem", "kafka"], repeat=1, warmup_s=0, sizes=QUICK)
    write_page(make_report(plan, Results(), {"command": "bench/run"}), page)
    written = page.read_text()
    assert written.count("\n\nold\n\n") == len(SUBJECTS) - 1
    assert "idle_groups" in written
    assert "startup" not in written
    assert complete_subjects({"startup"}) == []


def test_options_choose_phases_in_their_own_order() -> None:
    plan = make_plan(parse_arguments(["--only", "e2e,produce_1k", "--peers", "kafka", "--repeat", "2"]))
    assert [phase.name for phase in plan.phases] == ["produce_1k", "e2e"]
    assert (plan.peers, plan.repeat) == (["kafka"], 2)
    with pytest.raises(BenchError, match="does not know 'e2'"):
        make_plan(parse_arguments(["--only", "e2"]))


def test_metadata_is_read_from_its_bytes() -> None:
    broker = struct.pack(">ih9sih", 1, 9, b"127.0.0.1", 9092, -1)
    partitions = b"".join(
        struct.pack(">hiiiiii", 0, number, leader, 1, 1, 1, 1) for number, leader in enumerate((1, -1))
    )
    topic = struct.pack(">hh1sbi", 0, 1, b"t", 0, 2) + partitions
    answer = parse_metadata(struct.pack(">ii", 1, 1) + broker + struct.pack(">ii", 1, 1) + topic)
    assert answer.is_useful
    assert (answer.topics, answer.partitions_with_leader) == (1, 1)
    (size,) = struct.unpack_from(">i", metadata_frame(1))
    assert size == len(metadata_frame(1)) - 4


def test_a_process_has_cpu_time_and_memory() -> None:
    assert procfs.cpu_seconds(os.getpid()) > 0
    memory = procfs.memory(os.getpid())
    assert memory.peak_mb >= memory.resident_mb > 1


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("name", ["requests", "commits", "fetches", "bulk", "e2e", "idle"])
def test_load_generators_compile_without_warnings(name: str, tmp_path: Path) -> None:
    program = tmp_path / name
    subprocess.run(compile_command(name, program), check=True, timeout=60)
    refused = subprocess.run([str(program)], capture_output=True, text=True, timeout=10, check=False)
    assert refused.returncode == 1
    assert "--port" in refused.stderr
