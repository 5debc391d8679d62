# SPDX-License-Identifier: Apache-2.0
"""`.ci/bootstrap` on a machine that has nothing: a clean root of what release is here."""

from __future__ import annotations

import pytest

from tests.whole.clean_root import OFFLINE, clean_root, skip_unless_possible

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("release", ["bookworm", "noble"])
def test_a_bare_machine_measures_after_bootstrap(release: str) -> None:
    """Each purpose installs all that it needs, once; doctor misses nothing then, the virtual rack passes."""
    skip_unless_possible(release)
    with clean_root() as root:
        for purpose in ("python", "rack", "run"):
            done = root.run(".ci/bootstrap", purpose)
            assert done.returncode == 0, done.stdout
            assert "Installing Debian packages: " in done.stdout
            assert root.run(".venv/bin/hil", "--version").stdout.startswith("hil, version ")
        again = root.run(".ci/bootstrap", "run", enter=OFFLINE)
        assert (again.returncode, again.stdout) == (0, "")
        doctor = root.run(".venv/bin/hil", "doctor")
        assert doctor.returncode == 0, doctor.stdout
        words = ("--suite", "quick and echo", "--board", "v1")
        measured = root.run(".venv/bin/hil", "run", *words, environment={"HIL_UNDECIDED_STATUS": "0"})
        assert measured.returncode == 0, measured.stdout
        assert "Report" in measured.stdout, measured.stdout
