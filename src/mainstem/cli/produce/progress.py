"""The progress bar of `mainstem produce`; rich is loaded only when one is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mainstem.cli.output.message_json import OutgoingMessage

UPDATE_EVERY = 500


def progress(
    messages: Iterable[OutgoingMessage], size_bytes: int | None, *, shown: bool
) -> Iterator[OutgoingMessage]:
    """Pass the messages on, drawing a bar on stderr: by bytes of a file, or a plain count for a pipe."""
    if not shown:
        yield from messages
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [
        SpinnerColumn(),
        TextColumn("{task.fields[count]:,} messages"),
        BarColumn(),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("produce", total=size_bytes, count=0)
        pending_bytes = 0
        for count, message in enumerate(messages, 1):
            yield message
            pending_bytes += len(message.value or b"") + len(message.key or b"") + 1
            if count % UPDATE_EVERY == 0:
                bar.update(task, advance=pending_bytes, count=count)
                pending_bytes = 0
