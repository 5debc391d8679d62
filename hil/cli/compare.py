# SPDX-License-Identifier: Apache-2.0
"""``hil compare``: the working tree against a commit, with one command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from hil.base.errors import ConfigError, HilError
from hil.base.paths import PROJECT_FILE, PROJECT_ROOT
from hil.base.project import Project, read_project
from hil.boards.firmware.failure import told
from hil.cli.options import run_options
from hil.cli.run import hand_over, leased
from hil.run.base_build import Base, build_base, describe_tree, find_base, of_probes
from hil.run.options import RunOptions
from hil.store import ended


@click.command("compare")
@click.argument("ref", required=False)
@run_options("compare")
@click.pass_context
def command(context: click.Context, /, *, ref: str | None, **given: Any) -> None:
    """Build the working tree and the commit REF, measure both in turns, and judge.

    REF is where HEAD left the default branch (origin/HEAD, main or master) unless named. Git's index and the
    working tree stay as they are. In a project the product is compared, as its probes measure it; in a
    checkout of hil its own firmware.
    """
    options = RunOptions(**given, debug=bool(context.obj))
    ended.begin(options.out, "hil compare")
    project = read_project(PROJECT_ROOT) if (PROJECT_ROOT / PROJECT_FILE).is_file() else None
    base = find_base(PROJECT_ROOT, ref)
    images, planned = _planned(replace(options, rack=leased(options)), project)
    click.echo(f"Comparing {describe_tree(PROJECT_ROOT)} with {base}")
    hand_over(_built(planned, base, images, project))


def _planned(options: RunOptions, project: Project | None) -> tuple[tuple[Any, ...], RunOptions]:
    """Return the images that the run needs of both, and its options. Raises HilError as `hil run` does."""
    from hil.run.campaign import BENCH_FOLDERS, bench_stems, read_against, read_campaign, read_probes
    from hil.thresholds import load_project

    read_against(replace(options, base=PROJECT_ROOT))
    suite = options.suite
    if project:
        thresholds = load_project(options.thresholds)
        probes = read_probes(bench_stems(BENCH_FOLDERS), thresholds)
        suite, others = of_probes(suite, thresholds, probes.keys())
        if others:
            click.echo(f"Left out, as the project has no part in what they measure: {', '.join(others)}")
    planned = replace(options, suite=suite)
    images = tuple(read_campaign(planned).plan.images)
    if not images:
        raise ConfigError(
            f"no board that is chosen measures any case of {suite!r}.",
            next_step=f"hil plan --suite '{suite}' says why of each.",
        )
    return images, planned


def _built(options: RunOptions, base: Base, images: tuple[Any, ...], project: Project | None) -> RunOptions:
    """Build the base; return the options with where it is, or why it is not there."""
    try:
        with told(base.failure):
            return replace(options, base=build_base(images, base, PROJECT_ROOT, project, click.echo))
    except HilError as error:
        click.echo(f"No base: {error}")
        return replace(options, no_base_because=base.failure, budget=None)
