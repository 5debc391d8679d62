# SPDX-License-Identifier: Apache-2.0
"""A test has one name, whichever process collects it and when."""

from __future__ import annotations

import gzip

import pytest


@pytest.mark.parametrize("content", [gzip.compress(b"holds the second at which it was packed")])
def test_what_is_packed_gives_no_name(content: bytes, request: pytest.FixtureRequest) -> None:
    """xdist ends a session where two workers collected names that differ; packed bytes differ by second."""
    assert gzip.decompress(content)
    assert request.node.name == "test_what_is_packed_gives_no_name[content]"
