# SPDX-License-Identifier: Apache-2.0
"""Certificates of a run: what may be seen of them."""

from __future__ import annotations

import os
import signal
import ssl
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE

import pytest

from hil.network.certificates import make_certificates, make_secrets_folder, remove_secrets_folder
from hil.network.name_server import PEER_NAME
from tests.lab import folder_of_all, wait_for

UNSHARE = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]


def test_a_private_key_is_in_no_repr(tmp_path: Path) -> None:
    """A traceback or a log that shows the certificates does not show the board's key."""
    certificates = make_certificates(tmp_path, "127.0.0.1")
    assert "PRIVATE KEY" in certificates.client_key_pem
    assert "PRIVATE KEY" not in repr(certificates)
    assert certificates.client_key_pem.splitlines()[1] not in repr(certificates)


@pytest.mark.parametrize(
    ("name", "valid"),
    [("127.0.0.1", True), ("10.77.0.1", False), (PEER_NAME, True), ("other.hil.test", False)],
)
def test_the_servers_certificate_is_for_address_and_name(tmp_path: Path, name: str, valid: bool) -> None:
    """A client that checks the name accepts the server by its address and by its name, and by no other."""
    made = make_certificates(tmp_path, "127.0.0.1", PEER_NAME)
    context = ssl.create_default_context(cafile=str(made.ca_file))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(made.server_cert_file, made.server_key_file)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = context.wrap_bio(to_client, to_server, server_hostname=name)
    accepted = False
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
                accepted = accepted or side is client
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                assert not valid
                return
    assert (accepted, valid) == (True, True)


MAKE = "from hil.network.certificates import make_secrets_folder; print(make_secrets_folder(), flush=True); "


def test_a_runs_secrets_are_its_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open to nobody else; what nobody holds any more is removed, what a living run has is not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    left = tmp_path / "hil-secrets-left"  # by a host whose power failed
    left.mkdir()
    mine = make_secrets_folder()
    assert stat.S_IMODE(mine.stat().st_mode) == 0o700
    assert not left.exists()
    elsewhere = [*UNSHARE, sys.executable, "-c", MAKE]  # where no process of ours has a number
    subprocess.check_output(elsewhere, env=environment, timeout=60)
    assert mine.exists()
    (mine / "key").write_text("secret")
    remove_secrets_folder(mine)
    remove_secrets_folder(mine)
    assert not mine.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_runs_secrets_go_with_it(tmp_path: Path, number: signal.Signals) -> None:
    """No later run is needed: keys of a run that was killed are gone a moment after it."""
    argv = [sys.executable, "-c", f"{MAKE}input()"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(argv, env=environment, stdin=PIPE, stdout=PIPE, text=True) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        (folder / "key").write_text("secret")
        run.send_signal(number)
        run.wait()
    wait_for(lambda: not folder.exists(), lambda: "the keys are left")


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_another_users_secrets_are_not_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a temporary folder of all users each makes one of his own, and leaves alone what is not his."""
    with folder_of_all() as shared:
        monkeypatch.setattr(tempfile, "tempdir", str(shared))
        mine = make_secrets_folder()
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        argv = [*user, sys.executable, "-B", "-c"]
        said = subprocess.check_output(
            [*argv, f"{MAKE}import os; print(os.stat(make_secrets_folder()).st_uid)"],
            env={**os.environ, "TMPDIR": str(shared)}, text=True, timeout=60,
        )  # fmt: skip
        assert said.split()[1] == "65534"
        assert mine.is_dir()
