"""The client's side of SCRAM (RFC 5802) without channel binding, as Kafka speaks it.

No I/O: messages in, messages out. The server has to prove that it knows the password, too. Kafka takes user
and password as they are, without SASLprep.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode

from mainstem.wire.errors import SecurityError

ITERATIONS_MIN = 4096
# What a hostile server may make us compute: about a second.
ITERATIONS_MAX = 2_000_000
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING = "n,,"


class ScramClient:
    """One authentication: `first`, then `final` with the server's first message, then `check`; or `next` with
    whatever the server sends.
    """

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        self.name = mechanism
        self.who = f"user {user!r}"
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def next(self, answer: bytes) -> bytes | None:
        if not self._server_signature:
            return self.final(answer)
        self.check(answer)
        return None

    def final(self, server_first: bytes) -> bytes:
        """The proof, for the salt and iterations that the server named."""
        text = _text(server_first)
        fields = _fields(text)
        try:
            nonce, salt, iterations = fields["r"], b64decode(fields["s"], validate=True), int(fields["i"])
        except (KeyError, ValueError):
            raise SecurityError("the server's first SCRAM message cannot be read") from None
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SecurityError("the server's SCRAM nonce is not an answer to ours")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise SecurityError(
                f"the server asks for {iterations} SCRAM iterations, "
                f"{ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        without_proof = f"c={b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        signature = self._mac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Raises unless the server knows the password."""
        fields = _fields(_text(server_final))
        if "e" in fields:
            raise SecurityError(f"the server refused the SCRAM proof: {fields['e']}")
        try:
            signature = b64decode(fields["v"], validate=True)
        except (KeyError, ValueError):
            raise SecurityError("the server's last SCRAM message cannot be read") from None
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise SecurityError("the server does not know the password: it may be an impostor")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SecurityError("a SCRAM message of the server is not UTF-8") from None


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        fields.setdefault(name, value)
    return fields
