"""The command behind bench/run: reads the options, runs the plan, prints and saves the report."""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from bench.document import complete_subjects, write_page
from bench.errors import BenchError
from bench.peers import KAFKA_VERSION, PEERS, REPOSITORY, java_version, kafka_jars
from bench.phases import PHASES, SUBJECTS
from bench.phases.model import QUICK, Phase, Sizes
from bench.report import Report, make_report, text_table
from bench.runner import Plan, run
from bench.stats import EARLIER, KAFKA, MAINSTEM
from bench.tools import build_tools


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Measure Mainstem beside Apache Kafka on this machine."
    )
    parser.add_argument(
        "--only",
        metavar="NAME,...",
        help=f"some of the subjects: {', '.join(SUBJECTS)}; or of their phases: {', '.join(PHASES)}",
    )
    parser.add_argument("--peers", metavar="NAME,...", default=",".join(PEERS), help="default: %(default)s")
    parser.add_argument(
        "--earlier",
        type=Path,
        metavar="CHECKOUT",
        help="compare with the broker of another checkout instead of Apache Kafka (not metrics, spark)",
    )
    parser.add_argument("--repeat", type=int, metavar="N", help="measurements of each (default 5, quick 2)")
    parser.add_argument("--quick", action="store_true", help="small loads and a short warm-up, to try it out")
    parser.add_argument("--warmup", type=float, metavar="SECONDS", help="for each peer (default 25, quick 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the report")
    parser.add_argument(
        "--from-json", type=Path, metavar="FILE", help="print a saved report, measure nothing"
    )
    parser.add_argument("--write-docs", action="store_true", help="put it into docs/performance.md")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for the brokers' data (temporary)")
    return parser.parse_args(arguments)


# What they measure is not, or not only, the broker that is started.
_OF_THIS_CHECKOUT = ("metrics", "spark")


def make_plan(options: argparse.Namespace) -> Plan:
    repeat = options.repeat or (2 if options.quick else 5)
    if repeat < 1:
        raise BenchError("--repeat must be 1 or more")
    warmup_s = options.warmup if options.warmup is not None else (3.0 if options.quick else 25.0)
    return Plan(
        phases=_phases(options),
        peers=_peers(options),
        repeat=repeat,
        warmup_s=warmup_s,
        sizes=QUICK if options.quick else Sizes(),
        earlier=options.earlier and options.earlier.resolve(),
    )


def _peers(options: argparse.Namespace) -> list[str]:
    if options.earlier is None:
        return _chosen("--peers", options.peers, list(PEERS))
    if options.write_docs:
        raise BenchError("--write-docs is for the comparison with Apache Kafka: leave out --earlier")
    return [MAINSTEM, EARLIER]


def _phases(options: argparse.Namespace) -> list[Phase]:
    subjects = [name for name in SUBJECTS if options.earlier is None or name not in _OF_THIS_CHECKOUT]
    known = {phase.name for name in subjects for phase in SUBJECTS[name]}
    names = _chosen("--only", options.only, [*subjects, *(name for name in PHASES if name in known)])
    wanted = {phase.name for name in names if name in subjects for phase in SUBJECTS[name]} | set(names)
    return [phase for phase in PHASES.values() if phase.name in wanted]


def _chosen(option: str, text: str | None, known: list[str]) -> list[str]:
    wanted = known if text is None else [name.strip() for name in text.split(",")]
    for name in wanted:
        if name not in known:
            raise BenchError(f"{option} does not know '{name}'; known are {', '.join(known)}")
    return [name for name in known if name in wanted]


def _measure(options: argparse.Namespace, arguments: list[str]) -> Report:
    plan = make_plan(options)
    if options.write_docs and not complete_subjects({phase.name for phase in plan.phases}):
        raise BenchError(f"--write-docs needs all phases of a subject: --only {' or '.join(SUBJECTS)}")
    if KAFKA in plan.peers:
        kafka_jars()
    tools = build_tools()
    work_dir = Path(tempfile.mkdtemp(prefix="mainstem-bench-", dir=options.work))
    started = time.monotonic()
    try:
        results = run(plan, tools, work_dir)
    finally:
        shutil.rmtree(work_dir, ignore_errors=True)
    return make_report(plan, results, _about(plan, arguments, time.monotonic() - started))


def _about(plan: Plan, arguments: list[str], taken_s: float) -> dict[str, str]:
    about = {
        "command": " ".join(["bench/run", *arguments]),
        "measured": f"{time.strftime('%Y-%m-%d')}, in {taken_s / 60:.0f} minutes; medians (min..max)",
        "machine": f"{os.cpu_count()} cores ({_cpu_model()}), Linux {platform.release()}",
        "Mainstem": f"commit {_commit(REPOSITORY)}, Python {platform.python_version()}",
    }
    if plan.earlier is not None:
        about["earlier"] = f"commit {_commit(plan.earlier)}"
    if KAFKA in plan.peers:
        about["Apache Kafka"] = f"{KAFKA_VERSION}, Java {java_version()}"
    return about


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit(checkout: Path) -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def _end(signal_number: int, frame: FrameType | None) -> None:
    """SIGTERM unwinds like Ctrl-C, so that the brokers are stopped."""
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _end)
    options = parse_arguments(arguments)
    try:
        report = (
            json.loads(options.from_json.read_text()) if options.from_json else _measure(options, arguments)
        )
        print(text_table(report))
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
        if options.write_docs:
            write_page(report)
    except BenchError as error:
        print(f"bench/run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench/run: interrupted", file=sys.stderr)
        return 130
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
