# SPDX-License-Identifier: Apache-2.0
"""The symptoms of a capture are counted as tshark counts them with the filter that is named."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.network.dissect.segments import read_segments
from hil.network.dissect.symptoms import SYMPTOMS, Symptom, count_symptoms
from tests.history.segment_files import ACK, FIN, publish
from tests.lab import ROOT
from tests.network.dissect_rig import PLAIN, DissectLab, dissect_lab, opened


def is_command(symptom: Symptom) -> bool:
    return symptom.display_filter.startswith("tshark ")


def counted_by_tshark(path: Path) -> dict[str, int]:
    """Count as a user does: tshark's statistics of the display filters, and the commands."""
    filters = [symptom.display_filter for symptom in SYMPTOMS if not is_command(symptom)]
    said = output(f"tshark -q -r FILE -z {shlex.quote(','.join(['io,stat,0', *filters]))}", path)
    row = next(line for line in said.splitlines() if "<>" in line)
    counts = map(int, row.split("|")[2::2])  # of each filter frames and bytes, behind the interval
    return {
        symptom.name: int(output(symptom.display_filter, path)) if is_command(symptom) else next(counts)
        for symptom in SYMPTOMS
    }


def output(command: str, path: Path) -> str:
    command = command.replace("FILE", shlex.quote(str(path)))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def troubled(path: Path) -> Path:
    """Write a connection with some of everything, and two more: one that ends, one without its beginning."""
    file = opened()
    start = file.next[True]
    packets = [publish("t", b"%02d" % number) for number in range(8)]
    size = len(packets[0])
    for number, packet in enumerate(packets):
        file.client(packet, capture=number not in (1, 5))
    for _ in range(3):
        file.server(acknowledges=start + size)
    file.client(packets[1], sequence=start + size)  # fast
    file.client(packets[5], sequence=start + 5 * size)
    file.server()
    overtaken = publish("t", b"overtaken")
    at = file.next[True]
    file.client(overtaken, capture=False)
    file.client(publish("t", b"first"))
    file.client(overtaken, sequence=at, gap_s=0.0005)
    file.server()
    file.client(packets[6], sequence=start + 6 * size, gap_s=0.5)  # spurious
    file.client(publish("t", b"") + publish("t", b"full") + publish("t", b"", qos=1, message_id=9))
    file.client(publish("t", b""))
    late = publish("t", b"late")
    at = file.next[True]
    file.client(late)
    file.client(late, sequence=at, gap_s=1.0)
    ended, cut = opened(1), opened(2)
    ended.client(flags=FIN | ACK)
    ended.server(flags=FIN | ACK)
    ended.client()
    file.frames += ended.frames + cut.frames[3:]
    file.frames.sort(key=lambda one: one[0])
    return file.write(path)


@pytest.mark.slow
def test_each_symptom_is_counted_as_by_its_filter(tmp_path: Path) -> None:
    """In a capture that has all of them, each count is the filter's, and not 0.

    Three publishes carry nothing; those of which a segment came late do not count as such.
    """
    path = troubled(tmp_path / "trouble.pcap")
    found = count_symptoms(read_segments(path, PLAIN))
    assert found == counted_by_tshark(path)
    assert all(found.values()), found
    assert found["empty_publish_count"] == 3


def test_the_page_has_each_filter() -> None:
    """What docs/explain/dissecting.md tells a user to type is what is tested here."""
    page = (ROOT / "docs" / "explain" / "dissecting.md").read_text(encoding="utf-8").replace("\\\n", " ")
    said = " ".join(page.split())
    for symptom in SYMPTOMS:
        assert symptom.display_filter in said, symptom.name
        assert f"`{symptom.name}`" in said


@pytest.mark.slow
def test_a_sound_connection_has_no_symptom(tmp_path: Path) -> None:
    """A connection from SYN to FIN of which nothing was lost has only zeros."""
    file = opened()
    file.client(publish("t", b"x"))
    file.server()
    file.client(flags=FIN | ACK)
    file.server(flags=FIN | ACK)
    file.client()
    path = file.write(tmp_path / "sound.pcap")
    counts = count_symptoms(read_segments(path, PLAIN))
    assert counts == dict.fromkeys((symptom.name for symptom in SYMPTOMS), 0)
    assert counts == counted_by_tshark(path)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DissectLab]:
    with dissect_lab(tmp_path_factory.mktemp("symptoms")) as started:
        yield started


@pytest.mark.slow
def test_counts_are_tsharks_on_a_lossy_air(lab: DissectLab) -> None:
    """With frames lost, doubled and overtaken on their way every count is the filter's."""
    lab.rack.air.set("b1", "both", delay_us=2000, loss_ppm=30_000, duplicate_ppm=20_000, reorder_ppm=30_000)
    with lab.capture() as path:
        lab.publish(qos=0, payload_bytes=3000, count=200, gap_s=0.001, nodelay=False)
    found = count_symptoms(lab.segments(path))
    assert found == counted_by_tshark(path)
    seen = {name for name, count in found.items() if count}
    assert {"duplicate_ack_count", "retransmission_count", "lost_segment_count"} <= seen
