# SPDX-License-Identifier: Apache-2.0
"""How the pages read: ``python -m tools.prose`` prints words a page; ``--check`` fails on a word of the list.

Readers are firmware engineers, many of whom learnt English later. proselint has the general rules.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.size import ROOT, count_words, files

LONGEST_PAGE = 1500  # words; a longer page is two pages

# What reads as translated, and what to write.
WORDS = {
    r"(?:is|are) told\b": "is reported",
    r"told apart\b": "separated",
    r"(is|was|are) said\b": "is reported",
    r"(?:is|are) none\b": "does not exist",
    r"doing it is\b": "caused it",
    r"otherwise than\b": "unlike",
    r"set beside\b": "compared with",
    r"sets? (its|their|the) .* beside\b": "compares",
    r"goes by\b": "depends on",
    r"the like\b": "the same",
    r"but for\b": "except",
    r"whoever\b": "who",
    r"(?:thereby|whereby|hence)\b": "so",
    r"as ever\b": "as always",
    r"published figures?\b": "published values",
    r"those of (it|them)\b": "the noun again",
}
_CODE = re.compile(r"```.*?```|`[^`\n]*`|^    .*$", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    return [ROOT / "README.md", *files("docs", "*.md")]


def findings(path: Path) -> Iterator[str]:
    """Return a line for each word of the list in a page's text, code left out, and where it is too long."""
    text = path.read_text("utf-8")
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for pattern, instead in WORDS.items():
        for match in re.finditer(r"\b" + pattern.replace(" ", r"\s+"), prose, flags=re.IGNORECASE):
            line = prose.count("\n", 0, match.start()) + 1
            words = " ".join(match.group().split())
            yield f"{path.relative_to(ROOT)}:{line}: {words!r}: write {instead!r}"
    if (words := count_words(text)) > LONGEST_PAGE:
        yield f"{path.relative_to(ROOT)}: {words} words, and {LONGEST_PAGE} at most: make two pages of it"


def main(arguments: list[str]) -> int:
    """Print words by page and in all, or with --check what to mend; return the exit status."""
    if arguments == ["--check"]:
        found = [line for path in pages() for line in findings(path)]
        print(*found, sep="\n", end="\n" if found else "")
        lint = subprocess.run(
            [
                sys.executable,
                "-m",
                "proselint",
                "check",
                "--config",
                "tools/proselint.json",
                *map(str, pages()),
            ],
            cwd=ROOT,
            check=False,
        )
        return 1 if found or lint.returncode else 0
    counts = {path: count_words(path.read_text("utf-8")) for path in pages()}
    for path, count in sorted(counts.items(), key=lambda pair: pair[1]):
        print(f"{count:6,}  {path.relative_to(ROOT)}")
    print(f"{sum(counts.values()):6,}  words on {len(counts)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
