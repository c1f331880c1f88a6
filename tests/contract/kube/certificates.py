"""Certificates for tests: an authority, a server at 127.0.0.1, a client. Made by openssl."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """PEM files."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def serving(self, *, demand_client: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.authority))
        # As in Go; from Python 3.13 on this is strict, and the certificates are made as simply as
        # those of many clusters.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(self.server, self.server_key)
        context.verify_mode = ssl.CERT_REQUIRED if demand_client else ssl.CERT_NONE
        return context


def make_certificates(folder: Path) -> Certificates:
    folder.mkdir()
    authority, key = folder / "ca.crt", folder / "ca.key"
    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _openssl(*new, "-x509", "-keyout", key, "-out", authority, "-subj", "/CN=ca", "-days", "2")
    signed = {}
    for name in ("server", "client"):
        request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
        extensions.write_text("subjectAltName=IP:127.0.0.1\n")
        own_key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
        _openssl(*new, "-keyout", own_key, "-out", request, "-subj", f"/CN={name}")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", authority, "-CAkey", key, "-days", "2"),
            *("-CAcreateserial", "-extfile", extensions, "-out", certificate),
        )
        signed[name] = (certificate, own_key)
    return Certificates(authority, *signed["server"], *signed["client"])


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
