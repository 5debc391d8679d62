"""``hil doctor``."""

from __future__ import annotations

import click

from hil.base.errors import ConfigError
from hil.doctor import examine


@click.command("doctor")
def command() -> None:
    """Say what is missing on this machine, and the command that mends it."""
    checks = examine()
    for check in checks:
        mark = "ok  " if check.ok else "FAIL" if check.needed else "note"
        click.echo(f"{mark} {check.subject}: {check.sentence}")
        if not check.ok and check.mend:
            click.echo(f"       mend: {check.mend}")
    missing = [check for check in checks if check.needed and not check.ok]
    if missing:
        names = ", ".join(check.subject for check in missing)
        raise ConfigError(f"{len(missing)} missing on this machine: {names}.", next_step=missing[0].mend)
