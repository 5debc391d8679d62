# SPDX-License-Identifier: Apache-2.0
"""``hil compare``: the working tree against a commit, with one command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from hil.base.errors import ConfigError, HilError
from hil.base.paths import PROJECT_FILE, PROJECT_ROOT
from hil.base.project import Project, read_project
from hil.boards.firmware.failure import told
from hil.cli.options import boards_option, out_option, rack_option, thresholds_option
from hil.cli.run import hand_over, keep_options, leased, measure_options
from hil.run.base_build import Base, build_base, describe_tree, find_base, of_probes
from hil.store import ended


@click.command("compare")
@click.argument("ref", required=False)
@rack_option
@click.option(
    "--suite",
    default="pr",
    show_default=True,
    help="A suite or an expression; in a project what of it is a probe's.",
)
@boards_option
@measure_options
@click.option(
    "--budget", type=float, metavar="MINUTES", help="Begin no boots that would not be through.  [default: 15]"
)
@keep_options
@thresholds_option
@out_option
@click.pass_context
def command(
    context: click.Context, /, *, ref: str | None, rack: Path, suite: str, out: Path, **rest: Any
) -> None:
    """Build the working tree and the commit REF, measure both in turns, and judge.

    REF is where HEAD left the default branch (origin/HEAD, main or master) unless named. Git's index and the
    working tree stay as they are. In a project the product is compared, as its probes measure it; in a
    checkout of hil its own firmware.
    """
    ended.begin(out, "hil compare")
    project = read_project(PROJECT_ROOT) if (PROJECT_ROOT / PROJECT_FILE).is_file() else None
    base = find_base(PROJECT_ROOT, ref)
    options = {**rest, "rack": leased(rack, out, wait_s=rest["wait"]), "suite": suite, "out": out}
    images, options["suite"] = _planned(options, project)
    click.echo(f"Comparing {describe_tree(PROJECT_ROOT)} with {base}")
    hand_over({**options, **_built(base, images, project)}, debug=bool(context.obj))


def _planned(options: Mapping[str, Any], project: Project | None) -> tuple[tuple[Any, ...], str]:
    """Return the images that the run needs of both, and its selection. Raises HilError as `hil run` does."""
    from hil.run.campaign import BENCH_FOLDERS, bench_stems, read_against, read_campaign, read_probes
    from hil.thresholds import load_project

    read_against(SimpleNamespace(**_COMPARED, budget=options["budget"]))
    suite = str(options["suite"])
    if project:
        thresholds = load_project(options["thresholds"])
        probes = read_probes(bench_stems(BENCH_FOLDERS), thresholds)
        suite, others = of_probes(suite, thresholds, probes.keys())
        if others:
            click.echo(f"Left out, as the project has no part in what they measure: {', '.join(others)}")
    alone = SimpleNamespace(
        **{**options, "suite": suite, "budget": None, "board": options["boards"], "boots": None},
        board_target=options["target"],
        board_label=options["labels"],
        no_report=not options["report"],
        base=None,
        reference=None,
        unchanged=False,
        no_base_because=None,
    )
    images = tuple(read_campaign(alone).plan.images)
    if not images:
        raise ConfigError(
            f"no board that is chosen measures any case of {suite!r}.",
            next_step=f"hil plan --suite '{suite}' says why of each.",
        )
    return images, suite


_COMPARED = {
    "base": PROJECT_ROOT, "reference": None, "unchanged": False, "boots": None, "across_idf": False,
}  # fmt: skip


def _built(base: Base, images: tuple[Any, ...], project: Project | None) -> dict[str, Path | None]:
    """Build the base; return the options that say where it is, or why it is not there."""
    try:
        with told(base.failure):
            return {"base": build_base(images, base, PROJECT_ROOT, project, click.echo)}
    except HilError as error:
        click.echo(f"No base: {error}")
        return {"no_base_because": base.failure, "budget": None}
