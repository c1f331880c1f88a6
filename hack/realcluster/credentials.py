"""Certificates, tokens and kubeconfigs of a cluster."""

import base64
import csv
import json
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path

from realcluster import packages
from realcluster.failure import ClusterError

ADMIN = "admin"
PLUGIN = "dragoon-plugin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"

_EXTENSIONS = """\
[req]
distinguished_name = dn
[dn]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = {names}
[client]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
"""


def node_user(node: str) -> str:
    """The user name that the Node authorizer knows a kubelet by."""
    return f"system:node:{node}"


class Credentials:
    """What is in the credentials folder; each thing is made once and then kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.crt"
        self.server = folder / "server.crt"
        self.server_key = folder / "server.key"
        # With it the API server shows itself to the kubelets, for logs and exec.
        self.kubelet_client = folder / "kubelet-client.crt"
        self.kubelet_client_key = folder / "kubelet-client.key"
        self.account_key = folder / "service-account.key"
        self.account_public = folder / "service-account.pub"
        self.tokens = folder / "tokens.csv"

    def create(self, *, addresses: Sequence[str], nodes: Sequence[str]) -> None:
        """Make everything that is not there yet."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = ["DNS:localhost", "DNS:kubernetes.default.svc"]
        names += [f"IP:{address}" for address in addresses]
        settings = self.folder / "openssl.cnf"
        settings.write_text(_EXTENSIONS.format(names=", ".join(names)))
        if not self.ca.exists():
            self._certify("ca", "/CN=cluster", "ca", signed=False)
        if not self.server.exists():
            self._certify("server", "/CN=kube-apiserver", "server")
        if not self.kubelet_client.exists():
            subject = "/O=system:masters/CN=kube-apiserver-kubelet-client"
            self._certify("kubelet-client", subject, "client")
        if not self.account_public.exists():
            curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
            _openssl("genpkey", *curve, "-out", str(self.account_key))
            keys = ["-in", str(self.account_key), "-out", str(self.account_public)]
            _openssl("pkey", "-pubout", *keys)
        if not self.tokens.exists():
            self._write_tokens(nodes)

    def token(self, user: str) -> str:
        """The static token of a user."""
        with self.tokens.open(newline="") as lines:
            for token, name, *_ in csv.reader(lines):
                if name == user:
                    return token
        raise ClusterError(f"no token for user {user}")

    def kubeconfig(self, user: str, api_url: str, path: Path, token: str | None = None) -> Path:
        """Write a kubeconfig; it is JSON, which every YAML reader takes."""
        authority = base64.b64encode(self.ca.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "cluster",
                    "cluster": {"server": api_url, "certificate-authority-data": authority},
                }
            ],
            "users": [{"name": user, "user": {"token": token or self.token(user)}}],
            "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": user}}],
            "current-context": "cluster",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1) + "\n")
        return path

    def _write_tokens(self, nodes: Sequence[str]) -> None:
        users = [(ADMIN, "system:masters"), (CONTROLLER_MANAGER, ""), (SCHEDULER, "")]
        users += [(PLUGIN, "")]
        users += [(node_user(node), "system:nodes") for node in nodes]
        self.tokens.touch(mode=0o600)
        with self.tokens.open("w", newline="") as lines:
            csv.writer(lines).writerows(
                [secrets.token_hex(16), user, user, groups] for user, groups in users
            )

    def _certify(self, name: str, subject: str, extensions: str, *, signed: bool = True) -> None:
        files = [
            *("-keyout", str(self.folder / f"{name}.key")),
            *("-out", str(self.folder / f"{name}.crt")),
        ]
        signer = ["-CA", str(self.ca), "-CAkey", str(self.ca.with_suffix(".key"))] if signed else []
        _openssl(
            *("req", "-x509", "-config", str(self.folder / "openssl.cnf")),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "3650", "-subj", subject, "-extensions", extensions),
            *files,
            *signer,
        )


def _openssl(*arguments: str) -> None:
    command = [packages.find("openssl") or "openssl", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
