"""Certificates of a run: what may be seen of them."""

from __future__ import annotations

from pathlib import Path

from hil.network.certificates import make_certificates


def test_a_private_key_is_in_no_repr(tmp_path: Path) -> None:
    """A traceback or a log that shows the certificates does not show the board's key."""
    certificates = make_certificates(tmp_path, "127.0.0.1")
    assert "PRIVATE KEY" in certificates.client_key_pem
    assert "PRIVATE KEY" not in repr(certificates)
    assert certificates.client_key_pem.splitlines()[1] not in repr(certificates)
