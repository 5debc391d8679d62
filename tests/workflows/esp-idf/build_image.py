# SPDX-License-Identifier: Apache-2.0
"""Stand-in for ESP-IDF's idf.py under act: its image costs what costs.json beside the sources says.

The image is the stand-in QEMU's (tests/run/sealed_chip.py); without the file each part costs what PARTS says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.run.sealed_chip import rebuild

PARTS = {"publish_qos0": 12_408, "publish_qos1": 30_000}  # those of SEALED in tests/ci/act.py


def main() -> None:
    words = sys.argv[1:]
    overlaid = any(word.startswith("-DSDKCONFIG_DEFAULTS=") and "tick100" in word for word in words)
    own = Path("costs.json")
    costs = {**PARTS, **(json.loads(own.read_text()) if own.is_file() else {})}
    rebuild(Path(words[words.index("-B") + 1]), {"costs": costs}, tick_hz=100 if overlaid else 1000)


if __name__ == "__main__":
    main()
