# SPDX-License-Identifier: Apache-2.0
"""Whether two builds may be compared: of one product, by one ESP-IDF, as each says of itself."""

from __future__ import annotations

from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.selection import Firmware, description_of
from hil.model import Role


def project_of(build_dir: Path) -> str:
    """Return the name of project(…) that an app image carries, "" where it says none.

    Raises ConfigError where the build has no app image.
    """
    description = description_of(build_dir)
    return description.project if description else ""


def check_same_product(role: Role, candidate: Firmware, other: Firmware) -> None:
    """Raise ConfigError where a candidate would be compared with another product's firmware."""
    names = project_of(candidate.build_dir), project_of(other.build_dir)
    if all(names) and names[0] != names[1]:
        raise ConfigError(
            f"--{role}: {other.build_dir} is a build of {names[1]!r}, but the firmware under test "
            f"({candidate.build_dir}) of {names[0]!r}: hil does not compare two products.",
            next_step=f"pass a build of {names[0]!r}; if project(…) was renamed, leave --{role} out once.",
        )


def check_same_idf(role: Role, candidate: Firmware, other: Firmware) -> None:
    """Raise ConfigError where two builds are of different ESP-IDF releases, by what their images say."""
    here, there = (description_of(build.build_dir) for build in (candidate, other))
    if here and there and here.idf_version != there.idf_version:
        raise ConfigError(
            f"--{role}: {other.build_dir} was built with ESP-IDF {there.idf_version}, but the "
            f"firmware under test ({candidate.build_dir}) with {here.idf_version}: a difference "
            "may come from either.",
            next_step="build both with one release, or pass --across-idf to compare the releases.",
        )
