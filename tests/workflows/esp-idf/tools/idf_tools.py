# SPDX-License-Identifier: Apache-2.0
"""Stand-in for ESP-IDF's installer under act: puts the stand-in QEMU where ESP-IDF's tools are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
INSTALL = (
    "import sys, pathlib; from tests.run import sealed_chip; sealed_chip.install(pathlib.Path(sys.argv[1]))"
)


def main() -> None:
    assert sys.argv[1:] == ["install", "qemu-riscv32"], sys.argv
    folder = Path(os.environ["IDF_TOOLS_PATH"], "tools", "qemu-riscv32", "esp_develop_9.2.2", "qemu", "bin")
    command = [str(ROOT / ".venv" / "bin" / "python"), "-c", INSTALL, str(folder)]
    # in the checkout: in a team's project the stand-in would be looked for there
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=60)


if __name__ == "__main__":
    main()
