"""Java's and librdkafka's options of OAUTHBEARER: where tokens come from, and what is refused with advice."""

import json
import pickle

import pytest

from mainstem.wire import InvalidOption, TlsOptions, UnsupportedOption, WireError, from_kafka_options
from mainstem.wire.options import OAuthBearerOptions
from mainstem.wire.token_endpoint import ClientCredentials
from mainstem.wire.tokens import TokenFile, UnsecuredToken
from tests.wire.secured_kafka import PLAIN_MODULE, TOKEN_MODULE

SECRET = "don't tell"
URL = "https://login.example/oauth2/token"


def login(**options: str) -> dict[str, str]:
    """Options of a login, with `_` for `.` and without the prefix that most have."""
    given = {f"sasl.oauthbearer.{name.replace('_', '.')}": value for name, value in options.items()}
    return {
        "bootstrap.servers": "one:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
    } | given


def parsed(options: dict[str, str]) -> OAuthBearerOptions:
    found = from_kafka_options(options)
    assert isinstance(found.sasl, OAuthBearerOptions)
    assert SECRET not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    return found.sasl


def module(options: str) -> dict[str, str]:
    return {"sasl.jaas.config": f"{TOKEN_MODULE} required {options};"}


EXPECTED = ClientCredentials(URL, "me", SECRET, "read write")


@pytest.mark.parametrize(
    "options",
    [
        login(
            token_endpoint_url=URL,
            client_credentials_client_id="me",
            client_credentials_client_secret=SECRET,
            scope="read write",
        ),
        login(
            method="OIDC",
            token_endpoint_url=URL,
            client_id="me",
            client_secret=SECRET,
            scope="read write",
            grant_type="client_credentials",
        ),
        login(token_endpoint_url=URL)
        | module(f'clientId="me" clientSecret="{SECRET}" scope="read write"')
        | {
            "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer"
            ".OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer"
            ".ClientCredentialsJwtRetriever",
        },
    ],
)
def test_java_and_librdkafka_name_the_client_in_their_ways(options: dict[str, str]) -> None:
    assert parsed(options) == OAuthBearerOptions(EXPECTED)


def test_times_and_tls_of_the_endpoint() -> None:
    given = login(token_endpoint_url=URL, header_urlencode="true", extensions="logicalCluster=lkc-1,pool=p 2")
    times = {
        "sasl.login.connect.timeout.ms": "1",
        "sasl.login.read.timeout.ms": "2",
        "sasl.login.retry.backoff.ms": "3",
        "sasl.login.retry.backoff.max.ms": "4",
        "sasl.login.refresh.window.factor": "0.5",
        "sasl.oauthbearer.expected.audience": "passed over",
    }
    client = f'clientId="me" clientSecret="{SECRET}" scope="read write" extension_color="red"'
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "brokers.pem"}
    of_java = module(f'{client} ssl.truststore.type="PEM" ssl.truststore.location="trusted.pem"')
    found = parsed(given | times | trust | of_java)
    expected = ClientCredentials(
        URL, "me", SECRET, "read write", TlsOptions(trusted_file="trusted.pem"), True, 1, 2, 3, 4
    )
    extensions = (("color", "red"), ("logicalCluster", "lkc-1"), ("pool", "p 2"))
    assert found == OAuthBearerOptions(expected, extensions)
    of_librdkafka = module(client) | {"https.ca.location": "trusted.pem"}
    assert parsed(given | times | trust | of_librdkafka) == found


def test_a_token_in_a_file() -> None:
    found = parsed(login(token_endpoint_url="file:///var/run/a%20token"))
    assert found == OAuthBearerOptions(TokenFile("/var/run/a token"))


def test_unsecured_tokens_of_java_and_of_librdkafka() -> None:
    of_java = module(
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="7" '
        'unsecuredLoginListClaim_scope="|a|b" unsecuredLoginLifetimeSeconds="60" '
        'unsecuredLoginExtension_color="red"'
    )
    found = parsed(login() | of_java)
    assert isinstance(found.source, UnsecuredToken)
    assert json.loads(found.source.claims) == {"sub": "alice", "level": 7.0, "scope": ["a", "b"]}
    assert (found.source.lifetime_s, found.extensions) == (60, (("color", "red"),))
    config = (
        "principalClaimName=azp principal=alice scopeClaimName=s scope=a,b lifeSeconds=60 extension_color=red"
    )
    unsecure = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}
    found = parsed(login(config=config) | unsecure)
    assert isinstance(found.source, UnsecuredToken)
    assert json.loads(found.source.claims) == {"azp": "alice", "s": ["a", "b"]}
    assert (found.source.lifetime_s, found.extensions) == (60, (("color", "red"),))
    token = found.source.fetch()
    assert token.who == "the token of 'alice'"
    assert token.text.endswith(".")


CLIENT = {"client_id": "me", "client_secret": SECRET}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (login(), "SASL OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url"),
        (login(method="oidc"), "oidc needs a token endpoint"),
        (login(token_endpoint_url=URL), "set sasl.oauthbearer.client.credentials.client.id"),
        (login(token_endpoint_url="login.example/token", **CLIENT), "has to be an address with https:"),
        (login(token_endpoint_url="ftp://login.example/token", **CLIENT), "has to be an address with https:"),
        (
            login(config=f"principal {SECRET}") | {"enable.sasl.oauthbearer.unsecure.jwt": "true"},
            "NAME=VALUE",
        ),
        (login(config="principl=alice") | {"enable.sasl.oauthbearer.unsecure.jwt": "true"}, "principal=NAME"),
        (login() | module('unsecuredLoginStringClaim_name="alice"'), "set unsecuredLoginStringClaim_sub"),
        (
            login() | module('unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="soon"'),
            "unsecuredLoginLifetimeSeconds is 'soon'",
        ),
        (
            login() | module('unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_n="x"'),
            "unsecuredLoginNumberClaim_n is 'x'",
        ),
        (login(token_endpoint_url=URL, extensions="auth=x", **CLIENT), "the SASL extension 'auth'"),
        (login(token_endpoint_url=URL, extensions="a-b=x", **CLIENT), "the SASL extension 'a-b'"),
        (
            login(token_endpoint_url=URL, **CLIENT) | {"sasl.login.read.timeout.ms": "soon"},
            "sasl.login.read.timeout.ms is 'soon'",
        ),
    ],
)
def test_options_that_cannot_be_say_what_to_write(options: dict[str, str], advice: str) -> None:
    with pytest.raises(InvalidOption) as raised:
        from_kafka_options(options)
    assert advice in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (login(assertion_file="x"), "sasl.oauthbearer.assertion.file is not supported"),
        (login(scop="x"), "did you mean sasl.oauthbearer.scope?"),
        (login(method="azure"), "sasl.oauthbearer.method is 'azure'"),
        (login(grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer"), "sasl.oauthbearer.grant.type is"),
        (login() | {"sasl.login.callback.handler.class": "x.Y"}, "'x.Y', which is not supported"),
        (
            login(jwt_retriever_class="org.apache.kafka.JwtBearerJwtRetriever"),
            "JwtBearerJwtRetriever', which is not supported",
        ),
        (
            login(token_endpoint_url=URL) | {"sasl.jaas.config": f'{PLAIN_MODULE} required username="a";'},
            "PlainLoginModule of sasl.jaas.config is not supported with this SASL mechanism; "
            "use OAuthBearerLoginModule",
        ),
    ],
)
def test_other_ways_to_a_token_are_refused_with_what_to_set(options: dict[str, str], advice: str) -> None:
    with pytest.raises(UnsupportedOption) as raised:
        from_kafka_options(options)
    assert advice in str(raised.value)


def test_options_of_a_mechanism_that_is_not_used_change_nothing() -> None:
    plain = {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": SECRET}
    with_more = login(token_endpoint_url=URL) | plain | {"enable.sasl.oauthbearer.unsecure.jwt": "true"}
    assert from_kafka_options(with_more) == from_kafka_options(login() | plain)
    with pytest.raises(WireError, match="did you mean"):
        from_kafka_options(login() | plain | {"sasl.mechanizm": "PLAIN"})
