# SPDX-License-Identifier: Apache-2.0
"""A bench's record for tests of reproductions, from what its test chose and the usual for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import Kind, RunRecord, Scalar


def bench_record(
    bench: str,
    parameters: Mapping[str, Scalar],
    columns: Mapping[str, Sequence[int]],
    environment: Mapping[str, Mapping[str, Scalar]],
    *,
    run_id: str,
    board: str = "v1",
    boot_index: int = 0,
    kind: Kind = "virtual",
    warmup_rows: int = 0,
    started_utc: str = "2026-11-21T10:15:00Z",
) -> RunRecord:
    """Return the record of one case on one boot."""
    return RunRecord(
        run_id=run_id,
        rack="virtual",
        board=board,
        target="esp32" if kind == "physical" else f"{kind}-esp32",
        kind=kind,
        role="candidate",
        boot_index=boot_index,
        bench=bench,
        parameters=parameters,
        firmware_sha256="ab" * 32,
        ruler_hash="cd" * 32,
        protocol_version=1,
        clock="esp_timer",
        started_utc=started_utc,
        warmup_rows=warmup_rows,
        columns={name: tuple(column) for name, column in columns.items()},
        environment=environment,
    )
