# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.licence`: puts the licence's SPDX line before each source that lacks it.

Source: SPDX specification 3.0, annex "Using SPDX short identifiers in source files".
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IDENTIFIER = "SPDX-License-Identifier: Apache-2.0"
# style sheets and data are left out: the pages hold them byte for byte, and what they say is in LICENSE
LEFT_OUT = "hil/data/init/"  # what `hil init` writes is the team's, under a licence of its own
LINES = {
    ".py": f"# {IDENTIFIER}\n",
    ".c": f"/* {IDENTIFIER} */\n",
    ".h": f"/* {IDENTIFIER} */\n",
    ".js": f"// {IDENTIFIER}\n",
    ".ts": f"// {IDENTIFIER}\n",
    ".cmake": f"# {IDENTIFIER}\n",
}


def sources() -> Iterator[Path]:
    """Yield the project's own sources, as git knows them; empty ones are left out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if (
            path.suffix in LINES
            and not name.startswith(LEFT_OUT)
            and not path.is_symlink()
            and path.is_file()
            and path.stat().st_size
        ):
            yield path


def without_licence() -> list[Path]:
    """Return the sources whose first line is not their SPDX line."""
    return [path for path in sources() if not path.read_text(encoding="utf-8").startswith(LINES[path.suffix])]


if __name__ == "__main__":
    for source in without_licence():
        source.write_text(LINES[source.suffix] + source.read_text(encoding="utf-8"), encoding="utf-8")
        print(source.relative_to(ROOT))
