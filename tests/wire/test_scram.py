"""SCRAM message by message: the example of RFC 7677, and servers that lie."""

import pytest

from mainstem.wire import SecurityError
from mainstem.wire.scram import ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = (
    f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client(user: str = "user") -> ScramClient:
    return ScramClient("SCRAM-SHA-256", user, "pencil", NONCE)


def test_the_example_of_the_rfc() -> None:
    scram = client()
    assert scram.first() == f"n,,n=user,r={NONCE}".encode()
    assert scram.final(SERVER_FIRST) == CLIENT_FINAL
    scram.check(SERVER_FINAL)


def test_signs_in_a_name_are_escaped() -> None:
    assert client("a=b,c").first() == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()


def test_each_authentication_has_a_nonce_of_its_own() -> None:
    assert ScramClient("SCRAM-SHA-512", "u", "p").first() != ScramClient("SCRAM-SHA-512", "u", "p").first()


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"", "cannot be read"),
        (b"\xff\xfe", "not UTF-8"),
        (b"r=x,s=W22Z,i=4096", "not an answer to ours"),
        (f"r={NONCE},s=W22Z,i=4096".encode(), "not an answer to ours"),
        (f"r={NONCE}x,s=!,i=4096".encode(), "cannot be read"),
        (f"r={NONCE}x,s=W22Z,i=many".encode(), "cannot be read"),
        (f"r={NONCE}x,s=W22Z,i=1".encode(), "1 SCRAM iterations"),
        (f"r={NONCE}x,s=W22Z,i=999999999".encode(), "999999999 SCRAM iterations"),
    ],
)
def test_a_first_message_that_is_none(message: bytes, problem: str) -> None:
    with pytest.raises(SecurityError, match=problem):
        client().final(message)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"v=AAAA", "may be an impostor"),
        (b"v=!", "cannot be read"),
        (b"", "cannot be read"),
        (b"e=other-error", "refused the SCRAM proof: other-error"),
    ],
)
def test_a_server_that_does_not_know_the_password(message: bytes, problem: str) -> None:
    scram = client()
    scram.final(SERVER_FIRST)
    with pytest.raises(SecurityError, match=problem):
        scram.check(message)


def test_nothing_is_proved_before_the_exchange() -> None:
    with pytest.raises(SecurityError, match="impostor"):
        client().check(b"v=")
