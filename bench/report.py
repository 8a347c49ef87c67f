"""Turns results into a report: one row for each number of each phase, as plain text, Markdown and JSON.

The report is a plain JSON document, so that a saved one can be printed again without measuring.
"""

from collections.abc import Sequence
from typing import Any

from bench.phases.model import Phase
from bench.runner import Plan, Results
from bench.stats import EARLIER, KAFKA, MAINSTEM, Metric, ratio, summarise

Report = dict[str, Any]

_NAMES = {KAFKA: "Apache Kafka", EARLIER: "earlier"}


def make_report(plan: Plan, results: Results, about: dict[str, str]) -> Report:
    other = EARLIER if EARLIER in plan.peers else KAFKA
    return {
        "about": about,
        "other": other,
        "failures": results.failures,
        "rows": [_row(phase, metric, results, other) for phase in plan.phases for metric in phase.metrics],
    }


def _row(phase: Phase, metric: Metric, results: Results, other: str) -> dict[str, Any]:
    measured = results.values.get(phase.name, {})
    values = {peer: list(measured.get(peer, {}).get(metric.name, [])) for peer in (MAINSTEM, other)}
    summaries = {peer: summarise(series) for peer, series in values.items()}
    mainstem, compared = summaries[MAINSTEM], summaries[other]
    times = ratio(mainstem, compared)
    is_judged = other == KAFKA  # an earlier Mainstem is no yardstick for targets
    beside = compared.median if compared else None
    return {
        "phase": phase.name,
        "title": phase.title,
        "metric": metric.name,
        "unit": metric.unit,
        "peers": {
            peer: {"median": summary.median, "min": summary.low, "max": summary.high, "values": values[peer]}
            for peer, summary in summaries.items()
            if summary is not None
        },
        "ratio": times,
        "target": metric.target_text() if is_judged else "",
        "met": metric.is_met(mainstem.median, times, beside) if is_judged and mainstem else None,
    }


def text_table(report: Report) -> str:
    rows = [_headings(report), *_cells(report)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, *_notes(report)])


def markdown_table(report: Report) -> str:
    headings = _headings(report)
    lines = [_markdown_row(headings), _markdown_row(["---"] * len(headings))]
    lines += [_markdown_row(row) for row in _cells(report)]
    return "\n".join([*lines, "", *(f"- {note}" for note in _notes(report))])


def _headings(report: Report) -> tuple[str, ...]:
    return ("work", "measured", "Mainstem", _NAMES[_other(report)], "ratio", "target", "met")


def _other(report: Report) -> str:
    """Whom Mainstem is compared with; reports that were saved before there was a choice do not say."""
    other: str = report.get("other", KAFKA)
    return other


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(report: Report) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = []
    shown_before = ""
    for row in report["rows"]:
        cells.append(
            (
                "" if row["phase"] == shown_before else f"{row['phase']}: {row['title']}",
                f"{row['metric']} ({row['unit']})",
                _spread(row["peers"].get(MAINSTEM)),
                _spread(row["peers"].get(_other(report))),
                "" if row["ratio"] is None else f"{row['ratio']:.2f}x",
                row["target"],
                {True: "yes", False: "no", None: ""}[row["met"]],
            )
        )
        shown_before = row["phase"]
    return cells


def _spread(summary: dict[str, Any] | None) -> str:
    if summary is None:
        return "-"
    middle = format_number(summary["median"])
    if len(summary["values"]) == 1:
        return middle
    return f"{middle} ({format_number(summary['min'])}..{format_number(summary['max'])})"


def format_number(value: float) -> str:
    """Three telling digits; thousands with commas."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def _notes(report: Report) -> list[str]:
    notes = [f"{name}: {value}" for name, value in report["about"].items()]
    return notes + [f"FAILED {failure}" for failure in report["failures"]]
