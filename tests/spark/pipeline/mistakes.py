"""What the checks have against a small pipeline that is sound, with a part of it replaced or added."""

from pathlib import Path

from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from tests.spark.pipeline.told import told

BASE = """\
pipeline: p
dead_letters: p.dead
sources:
  orders:
    topic: orders
    decode: {format: json, schema: 'id BIGINT, user STRING, amount DOUBLE, at TIMESTAMP'}
    watermark: {column: at, delay: 1 minute}
  plain:
    topic: plain
    decode: {format: json, schema: 'id BIGINT, at TIMESTAMP'}
steps:
  one: SELECT * FROM orders
sinks:
  out: {from: one, topic: out}
"""


def mistakes(text: str, folder: Path | None = None) -> list[str]:
    file = str((folder or Path("nowhere")) / "p.yaml")
    document = checked(parse(text, file))
    return told(document, file=file)


def base_with(step: str = "", sink: str = "", source: str = "", top: str = "") -> str:
    text = BASE
    if source:
        text = text.replace("steps:\n", f"  extra: {source}\nsteps:\n")
    if step:
        text = text.replace("sinks:\n", f"  made: {step}\nsinks:\n")
    return text + (f"  more: {sink}\n" if sink else "") + (top + "\n" if top else "")
