# SPDX-License-Identifier: Apache-2.0
"""``hil firmware``: bundles, as CI hands them from the job that builds to the rack."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hil.boards.firmware.bundle import NO_IDF, Digests
from hil.boards.firmware.selection import SCHEMA, TargetComparison, compare_bundles, verify_bundle

_PATH = click.Path(path_type=Path)


@click.group("firmware")
def command() -> None:
    """Firmware bundles (hil build --bundle DIR): verify, compare."""


@command.command("verify")
@click.argument("bundle", type=_PATH)
def verify_command(bundle: Path) -> None:
    """Check that every file of BUNDLE is the one that was built. Exit 2 and its name where one is not."""
    for target, digests in verify_bundle(bundle).items():
        click.echo(f"{target}: {len(digests.files)} files as built; {_describe(digests)}")


@command.command("compare")
@click.argument("head", type=_PATH)
@click.argument("base", type=_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for workflows.")
def compare_command(head: Path, base: Path, *, as_json: bool) -> None:
    """Say for each target whether HEAD and BASE flash the same bytes. Exit 0 either way."""
    comparisons = compare_bundles(head, base)
    if as_json:
        record = {"schema": SCHEMA, "targets": [item.to_json() for item in comparisons]}
        click.echo(json.dumps(record, indent=2))
        return
    for item in comparisons:
        click.echo(_sentence(item))


def _sentence(item: TargetComparison) -> str:
    sides = (("head", item.head), ("base", item.base))
    known = "; ".join(f"{name}: {_describe(digests)}" for name, digests in sides if digests)
    differing = f" in {', '.join(item.differing)}" if item.differing else ""
    return f"{item.target}: {item.outcome}{differing} ({known})"


def _describe(digests: Digests) -> str:
    commit = f"commit {digests.commit[:12]}" if digests.commit else "no commit"
    changed = " with changes" if digests.dirty else ""
    by = "the host's compiler" if digests.idf_version == NO_IDF else f"ESP-IDF {digests.idf_version}"
    return f"image {digests.image_sha256[:12]}, {commit}{changed}, built by {by}"
