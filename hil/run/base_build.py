# SPDX-License-Identifier: Apache-2.0
"""What a working tree is compared with: a commit, and the images of it that a run needs.

In a team's project that is its product, of the repository as it was; elsewhere hil's own firmware, measured
by the benches of the working tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.git import git, try_git
from hil.base.idf_project import read_cmake
from hil.base.project import Project
from hil.boards.firmware.build import BUILD_ROOT, build
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.export import top_of
from hil.boards.firmware.product.at import build_product_at, product_writer
from hil.boards.firmware.revision import Revision, SourceState, find_revision
from hil.boards.firmware.ruler import WORKING_TREE, find_ruler
from hil.model import Case, Ruler
from hil.run.plan.selection import select_cases
from hil.thresholds.types import Thresholds

DEFAULT_BRANCHES = ("origin/HEAD", "main", "master")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Base:
    """The commit that a working tree is compared with, and ``why`` it is that one."""

    revision: Revision
    why: str

    def __str__(self) -> str:
        return f"{self.revision.commit[:12]} ({self.why})"

    @property
    def bundle(self) -> Path:
        """Where its images are: of this commit alone."""
        return BUILD_ROOT / "at" / f"base-{self.revision.commit[:12]}"

    @property
    def failure(self) -> Path:
        """Where it is written why there are none."""
        return self.bundle.with_name(f"{self.bundle.name}.failure.json")


def find_base(repository: Path, name: str | None) -> Base:
    """Return the commit that is named; without a name where HEAD left the default branch.

    Raises:
        ConfigError: no checkout, no such commit, no default branch, no common ancestor; or the working tree
            is what the default would be.
    """
    top_of(repository)
    if name is not None:
        return Base(find_revision(repository, name), name)
    branch = next((one for one in DEFAULT_BRANCHES if _commit_of(repository, one)), None)
    if branch is None:
        raise ConfigError(
            f"{repository} has no default branch: none of {', '.join(DEFAULT_BRANCHES)}.",
            next_step="name the commit to compare with: hil compare REF.",
        )
    shown = branch
    if branch == "origin/HEAD":
        shown = git(repository, "rev-parse", "--abbrev-ref", "origin/HEAD")
    found = try_git(repository, "merge-base", branch, "HEAD")
    if found.returncode:
        said = found.stderr.decode(errors="replace").strip() or "they have no common ancestor"
        raise ConfigError(
            f"the merge base of HEAD and {shown} was not found: {said}.",
            next_step="name the commit: hil compare REF; a shallow clone needs its history first: "
            "git fetch --unshallow.",
        )
    commit = found.stdout.decode().strip()
    if commit == _commit_of(repository, "HEAD") and not git(repository, "status", "--porcelain"):
        raise ConfigError(
            f"the working tree equals {commit[:12]}, the merge base with {shown}: there is nothing "
            "to compare.",
            next_step="name an earlier commit, such as hil compare HEAD~1.",
        )
    return Base(Revision(commit, commit), f"where HEAD left {shown}")


def _commit_of(repository: Path, name: str) -> str:
    found = try_git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return found.stdout.decode().strip() if found.returncode == 0 else ""


def of_probes(suite: str, benches: Mapping[str, Thresholds], probes: Set[str]) -> tuple[str, tuple[str, ...]]:
    """Return the selection of what measures a project's product, and the other benches that it left out.

    Raises:
        ConfigError: it names no probe; and as select_cases() does.
    """
    chosen = dict.fromkeys(case.bench for case in select_cases(benches, suite))
    own = [bench for bench in chosen if bench in probes]
    if not own:
        raise ConfigError(
            f"the suite {suite!r} selects no probe; other benches do not measure the project, so "
            "they are the same at each commit.",
            next_step=_other_suites(benches, probes),
        )
    others = tuple(bench for bench in chosen if bench not in probes)
    left = suite if suite.isidentifier() else f"({suite})"
    right = own[0] if len(own) == 1 else f"({' or '.join(own)})"
    return f"{left} and {right}" if others else suite, others


def _other_suites(benches: Mapping[str, Thresholds], probes: Set[str]) -> str:
    """Name the suites that compare a part of the project."""
    if not probes:
        return "write a probe: docs/start/measure-a-product.md."
    found: dict[str, list[str]] = {}
    for bench in sorted(probes):
        for suite, cases in benches[bench].suites.items():
            if any(_has_rule(benches[bench], case) for case in cases):
                found.setdefault(suite, []).append(bench)
    if not found:
        suites = {suite for bench in probes for suite in benches[bench].suites}
        return (
            f"probes are in the suites {', '.join(sorted(suites)) or '(none)'}, and no rule under "
            "'compare:' is for one: write one, or what a comparison shows is advice."
        )
    named = "; ".join(f"--suite {suite} ({', '.join(own)})" for suite, own in found.items())
    return f"suites with rules under 'compare:' for probes: {named}."


def _has_rule(own: Thresholds, case: Case) -> bool:
    known = {f"case.{key}": value for key, value in case.parameters.items()}
    facts = [{"metric": metric.name, **known} for metric in own.metrics_of(case.parameters)]
    return any(not rule.where.contradicts(one) for rule in own.compare for one in facts)


def build_base(images: Iterable[Image], base: Base, root: Path, project: Project | None, say: Say) -> Path:
    """Build the images of a commit into its bundle; return that.

    Raises:
        RefusedSourcesError: the sources of the commit do not build.
        HilError: they could not be built for another reason.
    """
    state = SourceState(base.revision.commit, dirty=False)
    for image in images:
        if image.product and project:
            _warn_of_untracked(project, say)
            named = replace(state, product=read_cmake(project.firmware).name)
            build_product_at(
                project.firmware,
                base.revision,
                root=project.root,
                target=image.target,
                say=say,
                publish=product_writer(base.bundle, image, named, say),
            )
        else:
            build(
                image.target,
                tick_hz=image.tick_hz,
                say=say,
                revision=base.revision,
                ruler=find_ruler(root, WORKING_TREE),
                publish=partial(_publish, image, base.bundle, state, say),
            )
    return base.bundle


def _publish(
    image: Image, bundle: Path, state: SourceState, say: Say, build_dir: Path, ruler: Ruler | None
) -> Path:
    return write_bundle(build_dir, image, bundle, replace(state, ruler=ruler), say=say)


def _warn_of_untracked(project: Project, say: Say) -> None:
    """Report that the working tree is built from files that are not in git."""
    own = project.firmware / "sdkconfig"
    if own.is_file() and try_git(project.firmware, "ls-files", "--error-unmatch", "sdkconfig").returncode:
        say(
            f"Warning: {own} is not in git, so the base is built without it, and what it sets counts as a "
            "change. To compare sources alone, move it away."
        )


def describe_tree(repository: Path) -> str:
    """Return what the working tree is, for a sentence."""
    changes = git(repository, "status", "--porcelain").splitlines()
    head = _commit_of(repository, "HEAD")[:12]
    files: Sequence[str] = [line[3:] for line in changes]
    changed = f" and {len(files)} changed file{'s' * (len(files) > 1)}" if files else ""
    return f"the working tree ({head}{changed})"
