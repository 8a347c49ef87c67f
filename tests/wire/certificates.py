"""Keys and certificates of one session, made by OpenSSL: an authority, a server, a client, a stranger."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka_peer import program

KEY_PASSWORD = "key-secret"


@dataclass(frozen=True)
class Certificates:
    """PEM files; `server_store` and `client_store` hold a key with its certificate."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "authority.pem"

    @property
    def stranger(self) -> Path:
        return self.folder / "stranger.pem"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.pem"

    def store(self, name: str) -> Path:
        return self.folder / f"{name}.store.pem"

    @property
    def encrypted_client_key(self) -> Path:
        return self.folder / "client.encrypted.key"


def make_certificates(folder: Path) -> Certificates:
    """Make them all in this folder."""
    made = Certificates(folder)
    for name in ("authority", "stranger"):
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-keyout", str(made.key(name)), "-out", str(made.certificate(name))),
        )
    # The server is known by its address, and another by a name that nobody calls it by.
    for name, alternative in (
        ("server", "IP:127.0.0.1"),
        ("elsewhere", "DNS:elsewhere"),
        ("client", "DNS:client"),
    ):
        _signed(made, name, alternative)
    _openssl(
        *("pkcs8", "-topk8", "-in", str(made.key("client")), "-out", str(made.encrypted_client_key)),
        *("-v2", "aes-256-cbc", "-passout", f"pass:{KEY_PASSWORD}"),
    )
    return made


def _signed(made: Certificates, name: str, alternative: str) -> None:
    request, extensions = made.folder / f"{name}.csr", made.folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={alternative}\n")
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"),
        *("-keyout", str(made.key(name)), "-out", str(request)),
    )
    _openssl(
        *(
            "x509",
            "-req",
            "-in",
            str(request),
            "-CA",
            str(made.authority),
            "-CAkey",
            str(made.key("authority")),
        ),
        *("-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", str(made.certificate(name))),
    )
    made.store(name).write_text(made.key(name).read_text() + made.certificate(name).read_text())


def _openssl(*arguments: str) -> None:
    result = subprocess.run([program("openssl"), *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
