# SPDX-License-Identifier: Apache-2.0
"""`make size`: how large the project is, beside what tools/size.yaml allows.

The numbers only go down by themselves: `make size` writes each lower number into the file. A higher number is
written by hand, with a line in the same commit that says what the growth pays for (see `unpaid`).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import Mock

import click
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from hil.base.git import git, try_git
from hil.cli.app import app
from hil.fixtures import options

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = Path("tools") / "size.yaml"
TEST_RUN = ROOT / "out" / "tests" / "last-run.json"  # written by tests/conftest.py
SLACK = 0.01  # how far a number may lie below what is allowed before somebody has to write the lower one

Sizes = Mapping[str, int]


def measured() -> dict[str, int]:
    """Return each size of the checkout: lines, commands, options, words."""
    commands = list(leaf_commands(app))
    yaml = [*files(".github/workflows", "*.yml"), *files(".github/actions", "*.yml")]
    return {
        **lines_of_rooms(),
        "tests": lines(files("tests", "*.py")),
        "tools": lines(files("tools", "*.py")),
        "commands": len(commands),
        "options": sum(isinstance(given, click.Option) for command in commands for given in command.params),
        "pytest options": pytest_options(),
        "workflows": len(files(".github/workflows", "*.yml")),
        "workflow lines": lines(yaml),
        "docs words": sum(count_words(path.read_text("utf-8")) for path in files("docs", "*.md")),
        "README words": count_words((ROOT / "README.md").read_text("utf-8")),
    }


def files(folder: str, pattern: str) -> list[Path]:
    """Return the files that git knows below a folder, and new files that it does not ignore."""
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f"{folder}/{pattern}")
    paths = [ROOT / name for name in git(ROOT, *words).split("\0") if name]
    return [
        path for path in paths if path.is_file()
    ]  # a file that was removed is known until it is committed


def count_words(text: str) -> int:
    """Return the words of a page; the bars of a table are none."""
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def lines_of_rooms() -> dict[str, int]:
    """Return room → lines of Python; the published studies are a room beside the other reports."""
    rooms: Counter[str] = Counter()
    for folder in ("fixtures", "hil", "reports"):
        for path in files(folder, "*.py"):
            rooms[room_of(path)] += lines([path])
    return dict(rooms)


def room_of(path: Path) -> str:
    first, second = path.relative_to(ROOT).parts[:2]
    if first == "hil":
        return f"hil/{second}" if not second.endswith(".py") else "hil"
    return "reports/studies" if (first, second) == ("reports", "studies") else first


def leaf_commands(command: click.Command) -> Iterator[click.Command]:
    """Yield the commands that do something: groups are left out."""
    if not isinstance(command, click.Group):
        yield command
        return
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        assert found is not None
        yield from leaf_commands(found)


def pytest_options() -> int:
    """Return how many options the plugin adds to pytest's."""
    group = Mock()
    group.getgroup.return_value = group
    options.pytest_addoption(group)
    return int(group.addoption.call_count)


def modules() -> int:
    return sum(len(files(folder, "*.py")) for folder in ("fixtures", "hil", "reports"))


def read_allowed(text: str) -> CommentedMap:
    """Return size → allowed number, with the comments that say what was paid for."""
    found = YAML().load(text)
    assert isinstance(found, CommentedMap)
    return found


def grown(now: Sizes, allowed: Sizes) -> list[str]:
    """Return a sentence for each size that is larger than allowed, or that no number allows."""
    return [
        f"{name}: {number:,}, allowed {allowed.get(name, 0):,}. Take something out, or raise the number in "
        f"{ALLOWED} and say behind it what the growth pays for."
        for name, number in now.items()
        if number > allowed.get(name, 0)
    ]


def slack(now: Sizes, allowed: Sizes) -> list[str]:
    """Return a sentence for each number that has room for growth nobody decided on."""
    return [
        f"{name}: {now.get(name, 0):,}, allowed {number:,}. Write the lower number: make size."
        for name, number in allowed.items()
        if now.get(name, 0) < number - max(1, SLACK * number)
    ]


def unpaid(before: CommentedMap, after: CommentedMap) -> list[str]:
    """Return the sizes whose number was raised without a new comment behind it."""
    return [
        name
        for name, number in after.items()
        if number > before.get(name, 0) and reason(after, name) in ("", reason(before, name))
    ]


def reason(allowed: CommentedMap, name: str) -> str:
    """Return the comment behind a number, "" where there is none."""
    comment = allowed.ca.items.get(name, [None] * 3)[2]
    return comment.value.split("\n")[0].lstrip("# ") if comment else ""


def last_change() -> tuple[str, str] | None:
    """Return the text of the file before its last change and now; None where git has no history of it."""
    now = (ROOT / ALLOWED).read_text(encoding="utf-8")
    committed = try_git(ROOT, "show", f"HEAD:{ALLOWED}")
    before = "HEAD"
    if committed.returncode == 0 and committed.stdout.decode() == now:
        found = try_git(ROOT, "log", "-1", "--format=%H", "--", str(ALLOWED))
        before = f"{found.stdout.decode().strip()}^"
    shown = try_git(ROOT, "show", f"{before}:{ALLOWED}")
    return None if shown.returncode else (shown.stdout.decode(), now)


def tighten(allowed: CommentedMap, now: Sizes) -> bool:
    """Write each lower number into ``allowed``, take out what is gone; return whether anything changed."""
    lower = {name: now[name] for name, number in allowed.items() if now.get(name, number) < number}
    gone = [name for name in allowed if name not in now]
    allowed.update(lower)
    for name in gone:
        del allowed[name]
    return bool(lower or gone)


def main() -> int:
    """Print every size beside what is allowed, write lower numbers; exit status 1 where something grew."""
    now, allowed = measured(), read_allowed((ROOT / ALLOWED).read_text(encoding="utf-8"))
    for name, number in now.items():
        print(f"{name:<16} {number:>9,} {allowed.get(name, 0):>9,}  {reason(allowed, name)}".rstrip())
    product = sum(number for name, number in now.items() if name in lines_of_rooms())
    print(f"{'product, lines':<16} {product:>9,}\n{'modules':<16} {modules():>9,}           not limited")
    print(last_test_run())
    wrong = grown(now, allowed)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    if tighten(allowed, now):
        with (ROOT / ALLOWED).open("w", encoding="utf-8") as stream:
            YAML().dump(allowed, stream)
        print(f"Lower numbers are written into {ALLOWED}: commit them.")
    return int(bool(wrong))


def last_test_run() -> str:
    """Return what the last whole `make test` of this checkout took."""
    if not TEST_RUN.exists():
        return "make test was not run in this checkout."
    run = json.loads(TEST_RUN.read_text(encoding="utf-8"))
    return (
        f"Last make test, of {run['commit']}: {run['processor_s'] / 60:.1f} minutes of processor time, "
        f"{run['wall_s'] / 60:.1f} minutes of wall time."
    )


if __name__ == "__main__":
    sys.exit(main())
