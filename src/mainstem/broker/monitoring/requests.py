"""The metrics of requests, connections, the event loop and the disk's times: what `Meters` has counted."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mainstem.broker.monitoring.meters import Meters
from mainstem.broker.monitoring.scrape import Collector
from mainstem.metrics import Exposition, add_histogram, label
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.registry import API_KEYS

if TYPE_CHECKING:
    from mainstem.broker.network.network import Network

_ERROR_NAMES = {int(code): code.name for code in ErrorCode}


def requests(meters: Meters) -> Collector:
    """By API, as far as it was used."""

    def collect(out: Exposition) -> Iterator[None]:
        total = out.counter("mainstem_requests_total", "Requests answered.")
        taken = out.counter("mainstem_request_bytes_total", "Bytes of requests, without their length fields.")
        given = out.counter("mainstem_response_bytes_total", "Bytes of responses.")
        seconds = out.histogram(
            "mainstem_request_duration_seconds",
            "From reading a request to its answer. waited=true: it had to wait, for data, others or a disk.",
        )
        errors = out.counter(
            "mainstem_errors_total", "Error codes in responses, counted for each place in them."
        )
        for key, info in API_KEYS.items():
            meter = meters.by_key[key]
            meter.settle()
            if not meter.request_bytes:
                continue
            api = label("api", info.name)
            total.add(meter.at_once.count + meter.waited.count, api)
            taken.add(meter.request_bytes, api)
            given.add(meter.response_bytes, api)
            for waited, histogram in (("false", meter.at_once), ("true", meter.waited)):
                if histogram.count:
                    add_histogram(seconds, histogram, f'{api},waited="{waited}"')
            for code, count in list(meter.errors.items()):
                errors.add(count, f"{api},{label('error', _ERROR_NAMES.get(code, code))}")
            yield

    return collect


def connections(meters: Meters, network: "Network") -> Collector:
    def collect(out: Exposition) -> Iterator[None]:
        now = out.gauge("mainstem_connections", "Open connections of clients.")
        waiting = out.gauge(
            "mainstem_requests_waiting", "Requests that wait for data, for others or for a disk."
        )
        open_now = list(network.connections)
        counts = Counter(connection.listener.name for connection in open_now)
        for name in network.listener_names:
            now.add(counts[name], label("listener", name))
        waiting.add(sum(connection.parked for connection in open_now))
        accepted = out.counter("mainstem_connections_accepted_total", "Connections that were accepted.")
        accepted.add(network.accepted)
        refused = out.counter(
            "mainstem_connections_refused_total", "Connections closed at once: a limit was reached."
        )
        refused.add(network.refused)
        broken = out.counter(
            "mainstem_connections_failed_total", "Connections closed because a request could not be served."
        )
        broken.add(meters.closed_for_errors)
        yield

    return collect


def times(meters: Meters) -> Collector:
    def collect(out: Exposition) -> Iterator[None]:
        for name, help_text, histogram in (
            ("event_loop_lag", "How late the event loop was, looked at twice a second.", meters.loop_lag),
            ("fsync", "What an fsync of a log took, with all files that belong to it.", meters.fsyncs),
            ("page_read", "What a fetch waited for pages that were not in memory.", meters.page_reads),
        ):
            add_histogram(out.histogram(f"mainstem_{name}_seconds", help_text), histogram)
        yield

    return collect
