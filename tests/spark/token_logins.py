"""Logins with OAUTHBEARER, which only librdkafka speaks, and an endpoint that gives tokens for them."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.wire.secured_kafka import TOKEN_MODULE

SECRET = "hush, hush"
# With a token that librdkafka makes itself.
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


class _TokenEndpoint(BaseHTTPRequestHandler):
    """Gives a token, which the tests' Kafka takes unsigned, to whoever knows the secret."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        if given != f"mainstem:{SECRET}":
            self._answer(401, {"error": "invalid_client", "given": given})  # which nobody should tell
            return
        now = int(time.time())
        parts = ({"alg": "none", "typ": "JWT"}, {"sub": "alice", "iat": now, "exp": now + 3600})
        encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        self._answer(
            200, {"access_token": f"{'.'.join(encoded)}.", "token_type": "bearer", "expires_in": 3600}
        )

    def _answer(self, status: int, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_tokens() -> Iterator[str]:
    """The address of an endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _TokenEndpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()
