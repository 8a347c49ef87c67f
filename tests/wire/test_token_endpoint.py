"""Asking a token endpoint: what is sent, what is tried again, and what is told when there is no token."""

import base64
import json
import socket
from pathlib import Path

import pytest

from mainstem.protocol.apis.k17_sasl_handshake import SaslHandshakeResponse
from mainstem.protocol.apis.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from mainstem.wire import ClientOptions, Cluster, SecurityError, TlsOptions
from mainstem.wire.errors import TokenUnavailable
from mainstem.wire.options import OAuthBearerOptions
from mainstem.wire.token_endpoint import ClientCredentials
from tests.wire.certificates import Certificates, make_certificates
from tests.wire.scripted_broker import METADATA, Script, ScriptedBroker, metadata
from tests.wire.token_logins import SECRET, TokenEndpoint, granted, serve_tokens, token_text


def source(url: str, secret: str = SECRET, **more: object) -> ClientCredentials:
    quick = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 300} | more
    return ClientCredentials(url, "mainstem", secret, **quick)  # type: ignore[arg-type]


def problem(asked: ClientCredentials, kind: type[SecurityError] = SecurityError) -> str:
    with pytest.raises(SecurityError) as raised:
        asked.fetch()
    assert type(raised.value) is kind
    text = str(raised.value)
    for secret in (SECRET, asked.client_secret, base64.b64encode(f"mainstem:{SECRET}".encode()).decode()):
        assert secret not in text
    return text


def test_a_client_asks_as_kafkas_does() -> None:
    with serve_tokens(TokenEndpoint()) as endpoint:
        token = source(endpoint.url, scope="read write").fetch()
    assert token.subject == "alice"
    (asked,) = endpoint.asked
    assert asked.form == "grant_type=client_credentials&scope=read+write"
    assert base64.b64decode(asked.authorization.removeprefix("Basic ")) == f"mainstem:{SECRET}".encode()


def test_credentials_are_quoted_when_that_is_wanted() -> None:
    with serve_tokens(TokenEndpoint()) as endpoint:
        problem(source(endpoint.url, quotes_credentials=True))
    assert base64.b64decode(endpoint.asked[0].authorization[6:]) == b"mainstem:hush%2C+hush"


def test_a_wrong_secret_is_told_at_once_and_not_quoted() -> None:
    with serve_tokens(TokenEndpoint()) as endpoint:
        text = problem(source(endpoint.url, "wrong-secret"))
        assert (
            f"the token endpoint {endpoint.url} gives no token: HTTP status 401, invalid_client: not" in text
        )
        assert "check sasl.oauthbearer.token.endpoint.url, and the client's id, secret and scope" in text
    assert len(endpoint.asked) == 1


def test_an_endpoint_in_trouble_is_asked_again() -> None:
    answers = iter([(503, b"busy"), (429, b"{}"), granted(token_text())])
    with serve_tokens(TokenEndpoint(lambda: next(answers))) as endpoint:
        assert source(endpoint.url, retry_backoff_max_ms=20_000).fetch().subject == "alice"
    assert len(endpoint.asked) == 3


def test_an_endpoint_that_stays_in_trouble_is_told() -> None:
    with serve_tokens(TokenEndpoint(lambda: (503, b"busy"))) as endpoint:
        text = problem(source(endpoint.url), TokenUnavailable)
    assert "gives no token: HTTP status 503" in text
    assert len(endpoint.asked) > 1


def test_an_endpoint_that_nobody_is_at_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    url = f"http://user:{SECRET}@127.0.0.1:{port}/token?key={SECRET}"
    text = problem(source(url), TokenUnavailable)
    assert text == f"the token endpoint http://127.0.0.1:{port}/token does not answer: connection refused"


def test_silence_is_not_waited_for_longer_than_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/token"
        assert "does not answer" in problem(source(url, read_timeout_ms=50), TokenUnavailable)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "answers without an access_token"),
        (b"<html>", "answers without an access_token"),
        (b"[1]", "answers without an access_token"),
        (b'{"access_token": 7}', "answers without an access_token"),
        (b'{"access_token": "two words"}', "that is no token"),
    ],
)
def test_an_answer_that_is_no_token_is_told(body: bytes, told: str) -> None:
    with serve_tokens(TokenEndpoint(lambda: (200, body))) as endpoint:
        assert told in problem(source(endpoint.url))


def test_a_token_of_no_known_form_counts_as_long_as_the_endpoint_says() -> None:
    body = json.dumps({"access_token": "opaque", "expires_in": 60}).encode()
    with serve_tokens(TokenEndpoint(lambda: (200, body))) as endpoint:
        assert source(endpoint.url).fetch().expires_at is not None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def test_the_endpoint_has_an_authority_of_its_own(made: Certificates, tmp_path: Path) -> None:
    with serve_tokens(TokenEndpoint(), made) as endpoint:
        trusted = source(endpoint.url, tls=TlsOptions(trusted_file=str(made.authority)))
        assert trusted.fetch().subject == "alice"
        text = problem(source(endpoint.url, tls=TlsOptions(trusted_file=str(made.stranger))))
        assert f"the certificate of the token endpoint {endpoint.url} is not accepted" in text
        assert "https.ca.location" in text


def test_a_login_that_runs_out_is_followed_by_one_with_a_new_token() -> None:
    tokens = iter(["first", "second"])
    shown: list[bytes] = []

    def answer() -> tuple[int, bytes]:
        return 200, json.dumps({"access_token": next(tokens)}).encode()

    def take(request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        shown.append(request.auth_bytes)
        return SaslAuthenticateResponse(session_lifetime_ms=3_600_000)

    scripts: dict[int, Script] = {
        17: lambda _: SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]),
        36: take,
        METADATA: lambda _: metadata({}, 1),
    }
    with serve_tokens(TokenEndpoint(answer)) as endpoint, ScriptedBroker(scripts) as broker:
        options = ClientOptions(
            (("127.0.0.1", broker.port),),
            security_protocol="SASL_PLAINTEXT",
            sasl=OAuthBearerOptions(source(endpoint.url)),
        )
        with Cluster(options) as cluster:
            cluster.metadata()
            cluster._brokers.any_connection()._core.expires_at = 0.0
            cluster.metadata()
    assert shown == [b"n,,\x01auth=Bearer first\x01\x01", b"n,,\x01auth=Bearer second\x01\x01"]
