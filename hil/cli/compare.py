# SPDX-License-Identifier: Apache-2.0
"""``hil compare``: the working tree against a commit, with one command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hil.base.errors import ConfigError, HilError
from hil.base.paths import PROJECT_FILE, PROJECT_ROOT
from hil.base.project import Project, read_project
from hil.boards.firmware.failure import told
from hil.cli.compare_suite import Suite, compare_suite, refuse_others
from hil.cli.options import FOLDER, run_options
from hil.cli.run import hand_over, leased
from hil.run.base_build import Base, build_base, describe_tree, find_base, of_probes
from hil.run.options import RunOptions
from hil.store import ended


class _WithArguments(click.Command):
    """What follows ``--`` is pytest's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_ARGUMENTS] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])


_ARGUMENTS = "hil.compare.arguments"


@click.command("compare", cls=_WithArguments, options_metavar="[OPTIONS] [-- PYTEST ARGUMENTS]")
@click.argument("ref", required=False)
@run_options("compare")
@click.option(
    "--pytest",
    "suite_path",
    metavar="PATH",
    type=click.Path(path_type=Path, exists=True),
    help="Compare by this pytest suite; what follows -- are pytest's arguments.",
)
@click.option(
    "--base",
    "base_build",
    metavar="DIR",
    type=FOLDER,
    help="With --pytest: the build to compare with, not REF's.",
)
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    ref: str | None,
    suite_path: Path | None,
    base_build: Path | None,
    **given: Any,
) -> int | None:
    """Build the working tree and the commit REF, measure both alternately, and judge.

    REF defaults to the merge base with the default branch (origin/HEAD, main or master). Git's index and the
    working tree are not changed. Of two commits, check out the newer: git switch --detach NEW. In a project,
    the product is compared, as its probes measure it; in a checkout of hil, hil's own firmware.

    With --pytest a suite of your own measures both builds: each session is a boot of the comparison.
    """
    options = RunOptions(**given, debug=bool(context.obj))
    arguments = context.meta[_ARGUMENTS]
    if suite_path:
        refuse_others(context)
        return compare_suite(options, Suite(suite_path, arguments, options.firmware, base_build), ref)
    if arguments or base_build:
        raise click.UsageError("--base and what follows -- are for --pytest PATH.")
    ended.begin(options.out, "hil compare")
    project = read_project(PROJECT_ROOT) if (PROJECT_ROOT / PROJECT_FILE).is_file() else None
    base = find_base(PROJECT_ROOT, ref)
    images, planned = _planned(replace(options, rack=leased(options)), project)
    click.echo(f"Comparing {describe_tree(PROJECT_ROOT)} with {base}")
    hand_over(_built(planned, base, images, project))
    return None


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
            f"none of the chosen boards can measure a case of {suite!r}.",
            next_step=f"hil plan --suite '{suite}' prints the reason for each.",
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
