# SPDX-License-Identifier: Apache-2.0
"""Write what a product is given into the image of its non-volatile storage, to be flashed with its build.

Passwords and keys are in files of the run's secrets folder only.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.given import NVS_KEY, Given, filled
from hil.boards.firmware.build_folder import FLASHER_ARGS, flasher_args
from hil.boards.firmware.partition_table import Partition, find_data
from hil.boards.flash.tool import table_of

NVS = 0x02
GIVEN_FILE = "given-nvs.bin"


def with_nvs(build_dir: Path, given: Given, words: Mapping[str, str | int], folder: Path) -> Path:
    """Return a build that flashes the given NVS too: ``folder``, made anew of links to the build's files.

    Raises ConfigError: the build's partition table has no partition for NVS, or what is given does not fit.
    """
    partition = _nvs_partition(build_dir)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        build_dir, folder, copy_function=_link, ignore=shutil.ignore_patterns("CMakeFiles", "esp-idf")
    )
    _write_nvs(folder / GIVEN_FILE, given, words, partition)
    description = dict(flasher_args(build_dir))
    files = {**description.get("flash_files", {}), hex(partition.offset): GIVEN_FILE}
    description["flash_files"] = dict(sorted(files.items(), key=lambda pair: int(pair[0], 0)))
    path = folder / FLASHER_ARGS
    path.unlink()  # it is a link to the build's own
    path.write_text(json.dumps(description), encoding="utf-8")
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # the secrets folder lies on another file system
        shutil.copy2(source, target)


def _nvs_partition(build_dir: Path) -> Partition:
    found = find_data(table_of(build_dir), NVS)
    if found is None:
        raise ConfigError(
            f"{build_dir}: hil.toml [given] writes to NVS, but the partition table has no NVS partition.",
            next_step="add an NVS partition, or use given.console.",
        )
    return found


def _write_nvs(path: Path, given: Given, words: Mapping[str, str | int], partition: Partition) -> None:
    """Make the image by Espressif's generator (esp-idf-nvs-partition-gen). Source: ESP-IDF, "NVS Partition
    Generator Utility"."""
    table = path.with_suffix(".csv")
    spaces: dict[str, list[tuple[str, str, str]]] = {}
    for name, value in given.nvs.items():
        found = NVS_KEY.fullmatch(name)
        assert found, name
        encoding = (found[3] or "i32") if isinstance(value, int) else "string"
        spaces.setdefault(found[1], []).append((found[2], encoding, filled(str(value), words)))
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("key", "type", "encoding", "value"))
        for space, entries in spaces.items():
            writer.writerow((space, "namespace", "", ""))
            for key, encoding, value in entries:
                writer.writerow((key, "data", encoding, value))
    argv = [
        sys.executable,
        "-m",
        "esp_idf_nvs_partition_gen",
        "generate",
        str(table),
        str(path),
        hex(partition.size_bytes),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    table.unlink()  # it holds what is secret; so does the image, in a folder that goes with the run
    if done.returncode != 0 or not path.is_file():
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise ConfigError(
            f"hil.toml [given] does not fit {partition.name!r}, a partition of {partition.size_bytes} bytes: "
            f"{''.join(last)}",
            next_step="shorten [given], or enlarge the partition.",
        )
