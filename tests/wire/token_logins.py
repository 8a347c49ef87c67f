"""Logins with OAUTHBEARER, and an endpoint that gives tokens for them."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.wire.certificates import Certificates
from tests.wire.secured_kafka import TOKEN_MODULE

SECRET = "hush, hush"
# With a token that the client makes itself, by librdkafka's options.
TOKEN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "OAUTHBEARER",
    "kafka.sasl.oauthbearer.config": "principal=alice",
    "kafka.enable.sasl.oauthbearer.unsecure.jwt": "true",
}
# With one that the brokers refuse.
UNWANTED_TOKEN = TOKEN | {"kafka.sasl.oauthbearer.config": "principalClaimName=azp principal=alice"}


def java_login(token_endpoint: str, secret: str) -> dict[str, str]:
    """The options of Java's client, word for word."""
    return {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token.endpoint.url": token_endpoint,
        "kafka.sasl.jaas.config": f'{TOKEN_MODULE} required clientId="mainstem" clientSecret="{secret}";',
        "kafka.sasl.login.callback.handler.class": "org.apache.kafka.OAuthBearerLoginCallbackHandler",
    }


def without_prefix(login: dict[str, str]) -> dict[str, str]:
    """As a client is told them that is no part of Spark."""
    return {name.removeprefix("kafka."): value for name, value in login.items()}


def token_text(lifetime_s: float = 3600, subject: str = "alice") -> str:
    """A token that nobody signed, which the tests' Kafka takes."""
    now = int(time.time())
    parts = ({"alg": "none", "typ": "JWT"}, {"sub": subject, "iat": now, "exp": now + lifetime_s})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{'.'.join(encoded)}."


def granted(text: str) -> tuple[int, bytes]:
    """The answer of an endpoint that gives this token."""
    document = {"access_token": text, "token_type": "bearer", "expires_in": 3600}
    return 200, json.dumps(document).encode()


@dataclass
class Asked:
    """What a client sent."""

    authorization: str
    form: str


@dataclass
class TokenEndpoint:
    """`answer` gives status and body for whoever knows the secret."""

    answer: Callable[[], tuple[int, bytes]] = lambda: granted(token_text())
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def take(self, asked: Asked) -> tuple[int, bytes]:
        self.asked.append(asked)
        given = base64.b64decode(asked.authorization.removeprefix("Basic ")).decode()
        if given != f"mainstem:{SECRET}":
            refusal = {"error": "invalid_client", "error_description": f"not {given}", "given": given}
            return 401, json.dumps(refusal).encode()  # which nobody should tell
        return self.answer()


@contextmanager
def serve_tokens(endpoint: TokenEndpoint, made: Certificates | None = None) -> Iterator[TokenEndpoint]:
    """The endpoint with its address; over TLS where there are certificates."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            status, body = endpoint.take(Asked(self.headers["Authorization"], form))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if made is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.store("server"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scheme = "http" if made is None else "https"
    endpoint.url = f"{scheme}://127.0.0.1:{server.server_port}/token"
    yield endpoint
    server.shutdown()
    server.server_close()
