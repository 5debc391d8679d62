# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.golden``: hold today's rendering against the golden files; with ``--renew`` replace them.

Exit 1 where something differs. Only a deliberate change of behaviour renews: see README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.golden.comparing import RENEW, STORED, differences, golden_files, renew
from tests.golden.render import render


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument(
        "--renew", action="store_true", help="replace the golden files by what is rendered now"
    )
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        rendered = render(STORED, Path(work))
    told = differences(rendered, golden_files())
    print("\n\n".join(told or ["Nothing differs from the golden files."]))
    if told and wanted.renew:
        renew(rendered)
        print(
            f"\nRenewed {len(told)} of {len(rendered)} golden files. Say in the commit what changed, and why."
        )
        return 0
    if told:
        print(f"\nA restructuring changes none of them. After a deliberate change of behaviour: {RENEW}")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
