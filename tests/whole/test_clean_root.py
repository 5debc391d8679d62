# SPDX-License-Identifier: Apache-2.0
"""`.ci/bootstrap` on a machine that has nothing: a clean root of each release of this distribution."""

from __future__ import annotations

import pytest

from tests.whole.clean_root import OFFLINE, RELEASES, clean_root, skip_unless_possible

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(7200)]


@pytest.mark.parametrize("release", [name for names in RELEASES.values() for name in names])
def test_a_bare_machine_measures_after_bootstrap(release: str) -> None:
    """Each purpose installs all that it needs, once; doctor misses nothing, rack and fast tests pass."""
    skip_unless_possible(release)
    with clean_root(release) as root:
        for purpose in ("python", "rack", "run"):
            done = root.run(".ci/bootstrap", purpose)
            assert done.returncode == 0, done.stdout
            assert "Installing Debian packages: " in done.stdout
            assert root.run(".venv/bin/hil", "--version").stdout.startswith("hil, version ")
        again = root.run(".ci/bootstrap", "run", enter=OFFLINE)
        assert (again.returncode, again.stdout) == (0, "")
        doctor = root.run(".venv/bin/hil", "doctor")
        assert doctor.returncode == 0, doctor.stdout
        assert root.run("apt-get", "install", "--yes", "make").returncode == 0
        for target, last in (("hil", "Report"), ("test-fast", " passed")):
            made = root.run("make", target)
            assert made.returncode == 0, made.stdout
            assert last in made.stdout, made.stdout
