# SPDX-License-Identifier: Apache-2.0
"""How many bytes of a chip's image are whose: by section and by component, as the linker's map file says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import app_image

DEADLINE_S = 120.0
_AGAIN = "build it again: hil build --target TARGET --bundle DIR; a virtual board's image has no map file."


@dataclass(frozen=True)
class Sizes:
    """Bytes of one image. ``total`` is what is flashed; ``sections`` and ``components`` count .bss too."""

    total: int
    sections: Mapping[str, int]
    components: Mapping[str, int]


@dataclass(frozen=True)
class SizeLine:
    """One line of a table: bytes, and of the base; None without a base."""

    name: str
    bytes: int
    base_bytes: int | None

    @property
    def difference(self) -> int:
        return 0 if self.base_bytes is None else self.bytes - self.base_bytes


def read_sizes(folder: Path) -> Sizes:
    """Return the sizes of the image in a build folder, or in a bundle's folder.

    Raises:
        ConfigError: it holds no map file of its image, or one that esp-idf-size does not read.
    """
    path = app_image(folder).with_suffix(".map")
    if not path.is_file():
        raise ConfigError(
            f"{folder} holds no {path.name}, which lists the size of each section.", next_step=_AGAIN
        )
    summary, archives = _read(path), _read(path, "--archives")
    sections: Counter[str] = Counter()
    for memory in summary["layout"]:
        sections.update({f"{memory['name']} {name}": part["size"] for name, part in memory["parts"].items()})
    components: Counter[str] = Counter()
    for archive in archives.values():
        components[archive["abbrev_name"]] += archive["size"]
    return Sizes(summary["total_size"], dict(sections), dict(components))


def _read(path: Path, *options: str) -> Any:
    argv = [sys.executable, "-m", "esp_idf_size", "--format", "json2", *options, str(path)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
        said = (done.stderr.strip().splitlines() or [f"esp-idf-size ended with {done.returncode}"])[-1]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        said = str(error)
    raise ConfigError(f"{path} cannot be read: {said}.", next_step=_AGAIN)


def table(head: Mapping[str, int], base: Mapping[str, int] | None) -> list[SizeLine]:
    """Return a line for each name, the largest first; beside a base only those that differ, by how much."""
    if base is None:
        lines = [SizeLine(name, size, None) for name, size in head.items() if size]
        return sorted(lines, key=lambda line: (-line.bytes, line.name))
    both = [SizeLine(name, head.get(name, 0), base.get(name, 0)) for name in {*head, *base}]
    return sorted((x for x in both if x.difference), key=lambda line: (-abs(line.difference), line.name))
