# SPDX-License-Identifier: Apache-2.0
"""No reader takes more of a file than such a file can hold, and each says so."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hil.base import reading
from hil.base.errors import ConfigError, HilError
from hil.base.project import read_project
from hil.base.reading import read_at_most
from hil.base.yamlfile import load
from hil.boards.firmware.app_image import read_app_description
from hil.boards.firmware.build_folder import flasher_args
from hil.boards.firmware.bundle import read_digests
from hil.boards.firmware.partition_table import read_csv
from hil.ci.plan import read_plan
from hil.history.files import read_summary
from hil.history.importing import _text
from hil.network.dissect.segments import MqttPorts, read_segments
from hil.network.ledger.files import read_arrivals
from hil.store.directory import RunDirectory
from hil.store.files import read_bytes
from hil.store.verdicts import read_verdict
from hil.trace.files import read_stored

READERS: tuple[tuple[str, str, Callable[[Path], object], int], ...] = (
    ("settings", "rack.yaml", load, reading.SETTINGS_MOST_BYTES),
    ("partitions", "partitions.csv", read_csv, reading.SETTINGS_MOST_BYTES),
    ("flasher", "flasher_args.json", lambda path: flasher_args(path.parent), reading.SETTINGS_MOST_BYTES),
    ("project", "hil.toml", lambda path: read_project(path.parent), reading.SETTINGS_MOST_BYTES),
    ("digests", "digests.json", lambda path: read_digests(path.parent), reading.SETTINGS_MOST_BYTES),
    ("import", "figures.csv", _text, reading.SUMMARY_MOST_BYTES),
    ("trace", "trace.json", read_stored, reading.RUN_MOST_BYTES),
    ("arrivals", "arrivals.csv", lambda path: read_arrivals(path, run=1), reading.RUN_MOST_BYTES),
    ("plan", "plan.json", read_plan, reading.SETTINGS_MOST_BYTES),
    ("image", "hil.bin", read_app_description, reading.IMAGE_MOST_BYTES),
    ("summary", "20261121T012300Z-pr-0001.json", read_summary, reading.SUMMARY_MOST_BYTES),
    ("journal", "records.jsonl", lambda path: RunDirectory.open(path.parent).read(), reading.RUN_MOST_BYTES),
    ("run", "run.json", read_bytes, reading.RUN_MOST_BYTES),
    ("verdict", "verdicts.json", read_verdict, reading.RUN_MOST_BYTES),
    (
        "capture",
        "capture.pcapng",
        lambda path: read_segments(path, MqttPorts(plain=(1883,), tls=())),
        reading.CAPTURE_MOST_BYTES,
    ),
)


@pytest.mark.parametrize(
    ("name", "read", "most_bytes"), [row[1:] for row in READERS], ids=[row[0] for row in READERS]
)
def test_a_file_that_is_too_large_is_refused_unread(
    tmp_path: Path, name: str, read: Callable[[Path], object], most_bytes: int
) -> None:
    """One byte more than may be read: the file, the limit and the way out are named, and it is not read."""
    path = tmp_path / name
    path.touch()
    os.truncate(path, most_bytes + 1)  # sparse: it takes no room
    with pytest.raises(HilError) as caught:
        read(path)
    for words in (name, f"larger than {most_bytes >> 20} MiB", "check that it is the right file"):
        assert words in str(caught.value)


def test_what_has_the_size_is_read_whole(tmp_path: Path) -> None:
    """A file of exactly as much as may be read is."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert read_at_most(path, 1000) == b"x" * 1000
    assert read_at_most(path, 200_000) == b"x" * 1000


def test_a_pipe_is_read_until_it_is_too_large(tmp_path: Path) -> None:
    """What has no size is read all the same, and no further than it may be."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write(count: int) -> None:
        with pipe.open("wb") as file:
            file.write(b"x" * count)

    for count, is_read in ((150_000, True), (200_001, False)):
        writer = threading.Thread(target=write, args=(count,))
        writer.start()
        if is_read:
            assert len(read_at_most(pipe, 200_000)) == count
        else:
            with pytest.raises(ConfigError, match="larger than 0 MiB"):
                read_at_most(pipe, 200_000)
        writer.join()


def test_a_device_without_end_is_not_read_for_ever() -> None:
    """/dev/zero is no file of settings."""
    with pytest.raises(ConfigError, match="larger than 2 MiB"):
        load("/dev/zero")
