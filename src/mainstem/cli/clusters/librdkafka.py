"""librdkafka's producer and consumer for `produce` and `consume`, and its errors turned into advice.

It is loaded by these two commands only. Whatever else they ask goes through the own client.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from mainstem.cli.clusters.advice import HINTS, unreachable
from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.cli.streams import say
from mainstem.wire import ClientOptions, SaslOptions
from mainstem.wire.connection import address_text
from mainstem.wire.errors import error_code
from mainstem.wire.options import OAuthBearerOptions

# How long an empty fetch may wait where only what is there already is wanted: the end is known sooner.
END_WAIT_MS = 10
REQUEST_TIMEOUT_S = 15.0
# After how long a token is asked for again that does not say when it ends.
_TOKEN_RENEWED_S = 3600

_silent = logging.getLogger("mainstem.librdkafka")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


def producer_client(target: Target, settings: dict[str, Any]) -> Producer:
    """A producer of this cluster, with librdkafka's settings on top of the common ones."""
    with kafka_errors(target.bootstrap):
        return Producer(_utf8(common_settings(target.options) | settings), logger=_silent)


def consumer_client(target: Target, settings: dict[str, Any]) -> Consumer:
    """A consumer of this cluster. librdkafka wants a group id even where no group is joined."""
    common = {"group.id": "mainstem-cli", "enable.auto.commit": False, "enable.auto.offset.store": False}
    with kafka_errors(target.bootstrap):
        return Consumer(_utf8(common_settings(target.options) | common | settings), logger=_silent)


def _utf8(settings: dict[str, Any]) -> dict[str, Any]:
    """The same; UnicodeEncodeError for what librdkafka would fail at in its own way."""
    for value in settings.values():
        str(value).encode()
    return settings


def common_settings(options: ClientOptions) -> dict[str, Any]:
    """How the own client reaches a cluster, in librdkafka's words."""
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(address_text(*address) for address in options.bootstrap_servers),
        "client.id": options.client_id,
        "security.protocol": options.security_protocol,
        "socket.connection.setup.timeout.ms": max(1000, options.connect_timeout_ms),
    }
    if options.uses_tls:
        from mainstem.wire.tls import normal_pem  # not at import: few connections need OpenSSL

        tls = options.tls
        given = {
            "ssl.ca.pem": tls.trusted and normal_pem(tls.trusted),
            "ssl.ca.location": tls.trusted_file,
            "ssl.certificate.pem": tls.certificate and normal_pem(tls.certificate),
            "ssl.certificate.location": tls.certificate_file,
            "ssl.key.pem": tls.key and normal_pem(tls.key),
            "ssl.key.location": tls.key_file,
            "ssl.key.password": tls.key_password,
            "ssl.endpoint.identification.algorithm": "https" if tls.check_host_name else "none",
        }
        settings |= {name: value for name, value in given.items() if value is not None}
    if options.uses_sasl and options.sasl is not None:
        settings["sasl.mechanism"] = options.sasl.mechanism
        match options.sasl:
            case SaslOptions(user=user, password=password):
                settings |= {"sasl.username": user, "sasl.password": password}
            case OAuthBearerOptions() as login:
                settings["oauth_cb"] = lambda _: _token(login)
    return settings


def _token(login: OAuthBearerOptions) -> tuple[str, float, str, dict[str, str]]:
    """A token of the source that the own client has, as librdkafka wants it."""
    from mainstem.wire.tokens import login_of

    token = login_of(login.source).token()
    expires_at = token.expires_at if token.expires_at is not None else time.time() + _TOKEN_RENEWED_S
    return token.text, expires_at, token.subject or "", dict(login.extensions)


class ConnectionNotice:
    """librdkafka's error callback: it goes on trying by itself, and the person is told once each time."""

    def __init__(self) -> None:
        self.lost = False

    def __call__(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self.lost:
            self.lost = True
            say("mainstem: the connection to the broker is lost; trying again (Ctrl-C stops)")

    def heard(self) -> None:
        """Something came from the broker."""
        if self.lost:
            self.lost = False
            say("mainstem: connected again")


@contextlib.contextmanager
def kafka_errors(bootstrap: str, what: str | None = None) -> Iterator[None]:
    """Turn librdkafka's exceptions inside the block into a CommandError."""
    try:
        yield
    except KafkaException as error:
        raise explain(error.args[0], bootstrap, what) from None


def explain(error: KafkaError, bootstrap: str, what: str | None = None) -> CommandError:
    """A librdkafka error as a sentence with a next step, where one is known."""
    if error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
        return unreachable(bootstrap, error.str())
    text = error.str().strip().removeprefix("Broker: ").removeprefix("Local: ")
    message = f"{what}: {text}" if what else text
    return CommandError(message, HINTS.get(error_code(error.code())) if error.code() > 0 else None)
