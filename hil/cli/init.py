# SPDX-License-Identifier: Apache-2.0
"""``hil init``: what an ESP-IDF project needs to be measured, and nothing of the project is changed."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

import hil
from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.git import try_git
from hil.base.idf_project import is_idf_project
from hil.base.paths import BUILD_STAMP, INIT_FILES, TOOL_RACKS
from hil.base.project import read_project

RACK = Path("hil") / "rack.yaml"
WORKFLOW = Path(".github") / "workflows" / "hil.yml"
IGNORED = Path(".gitignore")
CALLED = ".github/workflows/measure.yml"
_CALLED_AT = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+)@([A-Za-z0-9_][A-Za-z0-9_./+-]*)")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")
_ASIDE = re.compile(r"sdkconfig(\.ci\b|.*\.old$)")
_TARGET = re.compile(r"^CONFIG_IDF_TARGET=\"(\w+)\"$", re.MULTILINE)
EXPLAINED = {
    "hil.toml": "marks this folder as the project; where its firmware is",
    "hil/rack.yaml": "the boards: four virtual ones, until you name yours",
    "hil/benches/boot_time.probe.yaml": "a probe: which lines of your console are measured",
    "hil/benches/test_boot_time.py": "what its rows must keep",
    "hil/thresholds/boot_time.yaml": "its cases, metrics and limits",
    ".github/workflows/hil.yml": "measures each pull request on the virtual rack",
    ".gitignore": "leaves runs, reports and Python bytecode to this machine",
}
NEXT = {
    "hil doctor": "says what this machine lacks",
    "hil run --suite product": "builds your firmware, measures and judges it",
    "hil report build": "shows it; hil --help has the rest",
}


def find_firmware(root: Path) -> Path:
    """Return the folder of the ESP-IDF project: ``root``, or the one folder below it that is.

    Raises ConfigError where there is none, or more than one.
    """
    if is_idf_project(root):
        return root
    found = [path for path in sorted(root.iterdir()) if path.is_dir() and is_idf_project(path)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found)
    raise ConfigError(
        f"{root} holds {f'several ESP-IDF projects: {names}' if found else 'no ESP-IDF project'}.",
        next_step="go to the folder where idf.py builds (its CMakeLists.txt includes ESP-IDF's "
        "project.cmake), then hil init.",
    )


def find_targets(firmware: Path) -> list[str]:
    """Return the chips that a project is configured for: by sdkconfig and defaults; else the ESP32."""
    return [target for target, _ in _configured(firmware) if target in CHIPS] or ["esp32"]


def _configured(firmware: Path) -> list[tuple[str, str]]:
    """Return each target that a file's name or content says, once, and the first of the files.

    A name is ESP-IDF's, sdkconfig.defaults.esp32c3, or a team's, as sdkconfig.defaults.esp32c3-devkit. What
    idf-build-apps builds besides, sdkconfig.ci.NAME, is not the product.
    """
    found: dict[str, str] = {}
    files = [path for path in firmware.glob("sdkconfig*") if path.is_file() and not _ASIDE.match(path.name)]
    for path in sorted(files, key=lambda path: (path.name == "sdkconfig", path.name)):
        by_name = [word for word in re.split(r"[._-]", path.name) if re.match(r"esp\d", word)]
        for target in (*by_name, *_TARGET.findall(path.read_text(encoding="utf-8", errors="replace"))):
            found.setdefault(target, path.name)
    return list(found.items())


def called_workflow(asked: str) -> str:
    """Return what the project's workflow calls: OWNER/REPOSITORY/.github/workflows/measure.yml@REF.

    ``asked`` is OWNER/REPOSITORY@REF; without it, the commit and the repository that this installed tool was
    built from, "" where it knows neither. Raises ConfigError for anything else.
    """
    if asked:
        found = _CALLED_AT.fullmatch(asked)
        if not found or ".." in asked:
            raise ConfigError(
                f"--workflow {asked!r} names no repository and no version of the tool.",
                next_step="OWNER/REPOSITORY@REF, such as example/hil@v1.0.0; preferably a full commit hash.",
            )
        return f"{found[1]}/{CALLED}@{found[2]}"
    try:
        stamp = json.loads(BUILD_STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    repository, commit = stamp.get("repository"), stamp.get("commit")
    known = repository and commit and not stamp.get("dirty")
    return f"{repository}/{CALLED}@{commit} # v{hil.__version__}" if known else ""


def top_of(root: Path) -> Path:
    """Return the folder of the git repository that ``root`` is in, where GitHub looks for workflows."""
    found = try_git(root, "rev-parse", "--show-toplevel")
    top = Path(found.stdout.decode(errors="replace").strip()) if found.returncode == 0 else root
    return top if root.is_relative_to(top) else root


def default_branch(root: Path) -> str:
    """Return the branch that pull requests are merged into, as git was told by its remote; else main."""
    found = try_git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    name = found.stdout.decode(errors="replace").strip().removeprefix("origin/")
    return name if found.returncode == 0 and _BRANCH.fullmatch(name) else "main"


def ignores_runs(root: Path) -> bool:
    """Return whether git leaves out/ alone, or would, where ``root`` is in no repository yet."""
    if try_git(root, "check-ignore", "--quiet", "out/run").returncode == 0:
        return True
    path = root / IGNORED
    return path.is_file() and bool({"out", "out/", "/out", "/out/"} & set(path.read_text("utf-8").split()))


def files_of(root: Path, firmware: Path, today: datetime.date, workflow: str) -> Mapping[Path, str]:
    """Return what is to be written, by its path; no workflow where it is not known what that would call."""
    top = top_of(root)
    words = {
        "folder": firmware.relative_to(root).as_posix(),
        "targets": ", ".join(f'"{target}"' for target in find_targets(firmware)),
        "workflow": workflow,
        "branch": default_branch(root),
        "project": json.dumps(root.relative_to(top).as_posix()),
        "today": today.isoformat(),
        "next_year": (today + datetime.timedelta(days=365)).isoformat(),
    }
    templates = sorted(
        path for path in INIT_FILES.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    found = {path.relative_to(INIT_FILES): _filled(path, words) for path in templates}
    called = {top / WORKFLOW: found.pop(WORKFLOW)}
    found[RACK] = (TOOL_RACKS / "virtual.yaml").read_text(encoding="utf-8")
    if not (root / IGNORED).exists() and not ignores_runs(root):
        found[IGNORED] = "out/\n__pycache__/\n"
    return {**{root / name: text for name, text in found.items()}, **(called if workflow else {})}


def _filled(path: Path, words: Mapping[str, str]) -> str:
    text = path.read_text(encoding="utf-8")
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


@click.command("init")
@click.argument(
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    metavar="[FOLDER]",
)
@click.option(
    "--workflow",
    default="",
    metavar="OWNER/REPO@REF",
    help="Where on GitHub this tool is, for the workflow to call. [default: what an installed release was "
    "built from]",
)
def command(folder: Path, workflow: str) -> None:
    """Set up an ESP-IDF project for hil.

    Writes hil.toml, a virtual rack and a probe of your firmware with its limits below FOLDER (default: here),
    and a workflow where its repository has them. Existing files are not changed.
    """
    root = folder.resolve()
    called = called_workflow(workflow)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    files = files_of(root, find_firmware(root), today, called)
    for path, text in files.items():
        name = os.path.relpath(path, root)
        if path.exists():
            click.echo(f"kept    {name}, which was there")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(f"wrote   {name}")
    firmware = read_project(root).firmware
    for target, name in _configured(firmware):
        if target not in CHIPS:
            click.echo(f"left    {name}: {target} is no chip that hil knows ({', '.join(CHIPS)})")
    if not called:
        click.echo(_NO_WORKFLOW)
    if not ignores_runs(root):
        click.echo(_NOT_IGNORED)
    click.echo(f"\n{explained(files)}")


def explained(files: Iterable[Path]) -> str:
    """Return a line for each of these files, and for each command that comes next."""
    names = {name: EXPLAINED[name] for path in files for name in EXPLAINED if path.match(name)} | NEXT
    width = max(map(len, names))
    return "\n".join(f"{name:{width}}  {text}" for name, text in names.items())


_NOT_IGNORED = f"left    {IGNORED}: it does not name out/, which holds runs. Next: echo out/ >>{IGNORED}"
_NO_WORKFLOW = (
    f"left    {WORKFLOW}: this tool does not know which repository it is from. "
    "Next: hil init --workflow OWNER/REPO@REF."
)
