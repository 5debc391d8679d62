# SPDX-License-Identifier: Apache-2.0
"""Follow docs/start/adopt.md from a wheel, and print each step's time: `python -m tools.adopt`.

What runs is the page's own: its commands, and its files under the names that stand above them; where a step
names a section of another page, that section's. Exit status 1 where all of it took more than ten minutes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab import ROOT
from tests.whole import installed

PAGE = ROOT / "docs" / "start" / "adopt.md"
CHAPTER = "Ten minutes"
AIM_S = 600.0
DEADLINE_S = 1200.0

_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.\w+)`[^`\n]*:\s*\Z")
_SECTION_OF = re.compile(r"\]\((?P<page>[\w-]+\.md)#(?P<anchor>[\w-]+)\)")
_STATUS = re.compile(r"#.*\bexit status (\d+)")


class WrongPageError(AssertionError):
    """What the page says does not come to pass."""


@dataclass(frozen=True)
class Step:
    """A command where ``path`` is "", else what is written to a file. ``where`` is page and heading."""

    text: str
    where: str
    path: str = ""

    @property
    def words(self) -> str:
        return f"write {self.path}" if self.path else self.text.partition(" #")[0]


@dataclass(frozen=True)
class Done:
    step: Step
    took_s: float
    said: str


def steps(page: Path = PAGE, chapter: str = CHAPTER) -> list[Step]:
    """Return the steps of a chapter: its numbered sections, each with the sections that it names."""
    found: list[Step] = []
    for title, text in _sections(page.read_text(encoding="utf-8"), chapter):
        if not re.match(r"\d+\. ", title):
            continue
        found += _blocks(text, f"{page.name}: {title}")
        for link in [] if _BLOCK.search(text) else _SECTION_OF.finditer(text):
            other = page.with_name(link["page"])
            linked = dict(_linked(other.read_text(encoding="utf-8")))
            found += _blocks(linked[link["anchor"]], f"{other.name}: {link['anchor']}")
    return found


def _sections(text: str, chapter: str) -> Iterator[tuple[str, str]]:
    """Yield title and text of the sections below a chapter."""
    inside = False
    for level, title, body in _headed(text):
        inside = title == chapter if level <= 2 else inside
        if inside and level == 3:
            yield title, body


def _linked(text: str) -> Iterator[tuple[str, str]]:
    for _level, title, body in _headed(text):
        yield re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"), body


def _headed(text: str) -> Iterator[tuple[int, str, str]]:
    fenced = _BLOCK.sub(lambda block: "x" * len(block[0]), text)  # a comment in a block is no heading
    heads = list(_HEADING.finditer(fenced))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        yield len(head[1]), head[2], text[head.end() : following.start() if following else None]


def _blocks(text: str, where: str) -> Iterator[Step]:
    for block in _BLOCK.finditer(text):
        if block[1] == "sh":
            yield from (Step(line, where) for line in block[2].splitlines())
            continue
        named = _FILE.search(text[: block.start()])
        if named is None:
            raise WrongPageError(
                f"{where}: no line above the block says of which file it is: {block[2][:60]!r}"
            )
        yield Step(block[2], where, named[1])


def _say(line: str) -> None:
    print(line, flush=True)


def follow(
    wanted: list[Step], folder: Path, env: Mapping[str, str], say: Callable[[str], None] = _say
) -> list[Done]:
    """Do the steps, from ``folder`` on. Raises WrongPageError where one does not end as the page says."""
    done = []
    for step in wanted:
        began = time.monotonic()
        said = ""
        if step.path:
            with (folder / step.path).open("a", encoding="utf-8") as file:  # what is there already stays
                file.write(f"\n{step.text}" if file.tell() else step.text)
        else:
            folder, said = _run(step, folder, env)
        done.append(Done(step, time.monotonic() - began, said))
        say(f"{done[-1].took_s:7.1f} s  {step.words}")
    return done


def _run(step: Step, folder: Path, env: Mapping[str, str]) -> tuple[Path, str]:
    """Run one line as a shell does; return the folder that it leaves it in, and what it printed."""
    wanted = int(found[1]) if (found := _STATUS.search(step.text)) else 0
    with tempfile.NamedTemporaryFile("r") as at:
        script = f"trap 'pwd >{at.name}' EXIT\n{step.text}\n"
        ran = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=dict(env), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        if ran.returncode != wanted:
            raise WrongPageError(f"{step.where}: {step.text}\nended with {ran.returncode}:\n{ran.stdout}")
        return Path(at.read().strip()), ran.stdout


def table(done: list[Done]) -> str:
    """Return the times of all steps, files as one, and their sum beside the aim."""
    lines = [f"{one.took_s:7.1f} s  {one.step.words}" for one in done if not one.step.path]
    total_s = sum(one.took_s for one in done)
    files = sum(bool(one.step.path) for one in done)
    took = f"{total_s:7.1f} s  in all, of 600 s (10 minutes); typing {files} files is not in it"
    return "\n".join([*lines, took])


def desk(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return a folder with what the page begins from, and the environment of a new user."""
    home, shelf = folder / "home", folder / "shelf"
    home.mkdir()
    shutil.copytree(ROOT / "examples", shelf / "examples")
    shutil.copy(installed.wheel(), shelf)
    binaries = home / ".local" / "bin"
    binaries.mkdir(parents=True)
    return shelf, installed.users_environment(home, binaries)


PIPX = """\
#!/bin/sh -e
# what pipx does: an environment of its own, and the program on PATH
[ "$1" = install ]
{python} -m venv "$HOME/.local/pipx/hil"
"$HOME/.local/pipx/hil/bin/pip" install --quiet "$2"
ln -s "$HOME/.local/pipx/hil/bin/hil" "$HOME/.local/bin/hil"
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hil-adopt-") as name:
        shelf, env = desk(Path(name))
        (Path(env["XDG_CACHE_HOME"]) / "hil").rename(Path(name) / "fetched")  # npm is to fetch the generator
        if shutil.which("pipx") is None:
            program = Path(env["HOME"]) / ".local" / "bin" / "pipx"
            program.write_text(PIPX.format(python=sys.executable))
            program.chmod(0o755)
        done = follow(steps(), shelf, env)
    print(f"\n{table(done)}")
    return int(sum(one.took_s for one in done) > AIM_S)


if __name__ == "__main__":
    sys.exit(main())
