# SPDX-License-Identifier: Apache-2.0
"""``hil firmware``: bundles, as CI hands them from the job that builds to the rack."""

from __future__ import annotations

from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.boards.firmware.bundle import DIGESTS, NO_IDF, Digests
from hil.boards.firmware.ruler import RULER_LOG
from hil.boards.firmware.selection import verify_bundle
from hil.boards.firmware.size import SizeLine, Sizes, read_sizes, table
from hil.model import Ruler
from hil.store.files import typed_path

_PATH = click.Path(path_type=Path)


@click.group("firmware")
def command() -> None:
    """Verify a firmware bundle (hil build --bundle DIR), or print its sizes."""


@command.command("verify")
@click.argument("bundle", type=_PATH)
def verify_command(bundle: Path) -> None:
    """Check that every file of BUNDLE is as it was built. Otherwise name the file and exit with 2."""
    for target, digests in verify_bundle(bundle).items():
        click.echo(f"{target}: {len(digests.files)} files as built; {_describe(digests)}")


@command.command("size")
@click.argument("bundle", type=_PATH)
@click.option("--base", type=_PATH, help="Another bundle: print only what differs from it, and by how much.")
def size_command(bundle: Path, base: Path | None) -> None:
    """Print the bytes of each chip's image in BUNDLE by section and by component. Exit 0 either way."""
    bases = _sizes(base) if base else {}
    for name, sizes in _sizes(bundle).items():
        if base and name not in bases:
            raise ConfigError(
                f"{base} holds no {name}.", next_step=f"hil build --target {name} --bundle {typed_path(base)}"
            )
        beside = bases.get(name)
        click.echo(_row(name, SizeLine("total", sizes.total, beside.total if beside else None)))
        for title in ("sections", "components"):
            lines = table(getattr(sizes, title), getattr(beside, title) if beside else None)
            click.echo(f"{title}{'' if lines else ': no byte differs'}")
            for line in lines:
                click.echo(_row(f"  {line.name}", line))


def _sizes(bundle: Path) -> dict[str, Sizes]:
    """Return the sizes of the chips' images in a bundle, or of the image in a bundle's folder."""
    images = verify_bundle(bundle)
    found = [name for name, digests in images.items() if digests.idf_version != NO_IDF] or list(images)
    return {name: read_sizes(bundle if (bundle / DIGESTS).is_file() else bundle / name) for name in found}


def _row(name: str, line: SizeLine) -> str:
    beside = "" if line.base_bytes is None else f" {line.base_bytes:>12,} {line.difference:>+12,}"
    return f"{name:<40} {line.bytes:>12,}{beside}"


def _describe(digests: Digests) -> str:
    commit = f"commit {digests.commit[:12]}" if digests.commit else "no commit"
    changed = " with changes" if digests.dirty else ""
    by = "the host's compiler" if digests.idf_version == NO_IDF else f"ESP-IDF {digests.idf_version}"
    return f"image {digests.image_sha256[:12]}, {commit}{changed}{_benches(digests.ruler)}, built by {by}"


def _benches(ruler: Ruler | None) -> str:
    """Return the origin of the built-in benches; "" if they are the commit's own, as requested."""
    if ruler is None or not (ruler.moved or ruler.reason):
        return ""
    whose = f"of {ruler.commit[:12] or 'no commit'}{' with changes' if ruler.dirty else ''}"
    if ruler.moved:
        return f", its {', '.join(ruler.moved)} {whose}"
    return f", its benches its own, as those {whose} do not build with it ({RULER_LOG}: {ruler.reason})"
