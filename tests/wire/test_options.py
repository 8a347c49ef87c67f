"""Kafka's client options as the options of this client, and what is refused with advice."""

import pytest

from mainstem.wire import InvalidOption, SaslOptions, TlsOptions, UnsupportedOption, from_kafka_options
from mainstem.wire.jaas import PASSWORD_MODULES, parse_jaas

SERVERS = {"bootstrap.servers": "one:9092"}
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "don't tell"


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("one:9092", [("one", 9092)]),
        (" one:9092 , two.example:1 ,", [("one", 9092), ("two.example", 1)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("SSL://one:9092,one:9092", [("one", 9092)]),
    ],
)
def test_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    assert list(from_kafka_options({"bootstrap.servers": text}).bootstrap_servers) == addresses


@pytest.mark.parametrize(
    "text", ["", ",", "one", "one:", "one:x", "one:0", "one:65536", "::1:9092", "one:9092 two"]
)
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"bootstrap\.servers"):
        from_kafka_options({"bootstrap.servers": text})


def test_what_is_not_about_the_connection_is_left_to_others() -> None:
    options = from_kafka_options(SERVERS | {"max.poll.records": "7", "group.id": "g", "fetch.max.bytes": "1"})
    assert options == from_kafka_options(SERVERS)


def test_times_and_names() -> None:
    options = from_kafka_options(
        SERVERS
        | {
            "client.id": "me",
            "request.timeout.ms": "1",
            "default.api.timeout.ms": "2",
            "retry.backoff.ms": "3",
            "retry.backoff.max.ms": "4",
            "socket.connection.setup.timeout.ms": "5",
        }
    )
    assert (options.client_id, options.request_timeout_ms, options.api_timeout_ms) == ("me", 1, 2)
    assert (options.retry_backoff_ms, options.retry_backoff_max_ms, options.connect_timeout_ms) == (3, 4, 5)
    with pytest.raises(InvalidOption, match=r"request\.timeout\.ms is 'soon'"):
        from_kafka_options(SERVERS | {"request.timeout.ms": "soon"})


def sasl(**more: str) -> SaslOptions:
    given = {name.replace("_", "."): value for name, value in more.items()}
    options = from_kafka_options(SERVERS | {"security.protocol": "SASL_SSL"} | given)
    assert isinstance(options.sasl, SaslOptions)
    return options.sasl


@pytest.mark.parametrize(
    ("config", "user", "password"),
    [
        (f'{PLAIN} required username="a" password="b";', "a", "b"),
        (f"{PLAIN} required\n  username='a'\n  password='b' ;", "a", "b"),
        (f"{PLAIN} REQUIRED username=a password=b;", "a", "b"),
        (rf'{PLAIN} required username="a\"b" password="\\c\n\101;=";', 'a"b', "\\c\nA;="),
        (f'/* ours */ {SCRAM} required serviceName="kafka" password="b" username="a"; // done', "a", "b"),
        (f'{SCRAM} required username="a" password="" tokenauth="false";', "a", ""),
    ],
)
def test_logins_of_java(config: str, user: str, password: str) -> None:
    login = parse_jaas(config, PASSWORD_MODULES)
    assert (login["username"], login["password"]) == (user, password)


@pytest.mark.parametrize(
    "config",
    [
        "",
        ";",
        PLAIN,
        f"{PLAIN} required username=a password={SECRET};",
        f'{PLAIN} required username="a" password="{SECRET}"',
        f'{PLAIN} perhaps username="a" password="{SECRET}";',
        f'{PLAIN} required username "a" password "{SECRET}";',
        f'{PLAIN} required username="a" password="{SECRET}; ',
        f'{PLAIN} required username="a" password="{SECRET}"; {PLAIN} required username="a";',
    ],
)
def test_logins_that_cannot_be_read_are_not_quoted(config: str) -> None:
    with pytest.raises(InvalidOption, match="write it as") as raised:
        sasl(sasl_mechanism="PLAIN", sasl_jaas_config=config)
    assert SECRET not in str(raised.value)


def test_a_user_of_sasl() -> None:
    config = f'{SCRAM} required username="a" password="{SECRET}";'
    expected = SaslOptions("SCRAM-SHA-512", "a", SECRET)
    assert sasl(sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=config) == expected
    assert sasl(sasl_mechanisms="scram-sha-512", sasl_username="a", sasl_password=SECRET) == expected
    options = from_kafka_options(
        SERVERS | {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.jaas.config": config}
    )
    assert SECRET not in repr(options)
    assert (options.security_protocol, options.uses_tls, options.uses_sasl) == ("SASL_SSL", True, True)
    with pytest.raises(InvalidOption, match="needs a user and a password"):
        sasl(sasl_mechanism="PLAIN")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (
            {"sasl.mechanism": "GSSAPI"},
            "the SASL mechanism GSSAPI is not supported; "
            "set sasl.mechanism to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
        ),
        ({}, "GSSAPI is not supported; set sasl.mechanism"),
        (
            {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
            },
            "Krb5LoginModule of sasl.jaas.config is not supported with this SASL mechanism; "
            "use PlainLoginModule or ScramLoginModule",
        ),
        (
            {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f'{SCRAM} required tokenauth="true";'},
            "take tokenauth out",
        ),
        ({"sasl.mechanizm": "PLAIN"}, "sasl.mechanizm is not supported; did you mean sasl.mechanism?"),
        ({"sasl.login.callback.handler.class": "x.Y"}, "leave it out"),
        ({"ssl.truststore.location": "trust.jks"}, "keytool -list -rfc"),
        ({"ssl.truststore.location": "trust.pem", "ssl.truststore.type": "JKS"}, "is a JKS store"),
        ({"ssl.keystore.location": "own.p12", "ssl.keystore.type": "PKCS12"}, "openssl pkcs12"),
        ({"ssl.cipher.suites": "X"}, "ssl.cipher.suites is not supported"),
        ({"ssl.protocol": "SSLv3", "ssl.enabled.protocols": "TLSv1"}, "TLS 1.2 and 1.3 are spoken"),
        ({"enable.ssl.certificate.verification": "false"}, "certificates are always verified"),
        ({"security.providers": "x.Y"}, "leave it out"),
    ],
)
def test_what_is_refused_says_what_to_write_instead(options: dict[str, str], advice: str) -> None:
    with pytest.raises(UnsupportedOption) as raised:
        from_kafka_options(SERVERS | {"security.protocol": "SASL_SSL"} | options)
    assert advice in str(raised.value)


def tls(**more: str) -> TlsOptions:
    given = {f"ssl.{name.replace('_', '.')}": value for name, value in more.items()}
    return from_kafka_options(SERVERS | {"security.protocol": "SSL"} | given).tls


def test_certificates_and_keys() -> None:
    assert tls() == TlsOptions()
    assert tls(truststore_certificates=PEM, truststore_type="PEM").trusted == PEM
    assert tls(truststore_location="x", truststore_type="pem").trusted_file == "x"
    assert tls(truststore_location="x.pem", protocol="TLSv1.3").trusted_file == "x.pem"
    assert tls(ca_location="x").trusted_file == "x"
    own = tls(keystore_location="x.pem", key_password=SECRET)
    assert (own.certificate_file, own.key_file, own.key_password) == ("x.pem", "x.pem", SECRET)
    own = tls(keystore_key=KEY, keystore_certificate_chain=PEM, key_password=SECRET)
    assert (own.certificate, own.key) == (PEM, KEY)
    assert SECRET not in repr(own)
    assert "BBBB" not in repr(own)
    assert tls(endpoint_identification_algorithm="").check_host_name is False
    assert tls(endpoint_identification_algorithm="HTTPS").check_host_name is True


def test_certificates_and_keys_that_cannot_be() -> None:
    with pytest.raises(InvalidOption, match="a certificate needs its key"):
        tls(keystore_certificate_chain=PEM)
    with pytest.raises(InvalidOption, match=r"ssl\.keystore\.key is not PEM") as raised:
        tls(keystore_certificate_chain=PEM, keystore_key=SECRET)
    assert SECRET not in str(raised.value)
    with pytest.raises(InvalidOption, match="has to be https, or empty"):
        tls(endpoint_identification_algorithm="ldap")
    with pytest.raises(InvalidOption, match="it has to be one of PLAINTEXT, SSL"):
        from_kafka_options(SERVERS | {"security.protocol": "TLS"})
