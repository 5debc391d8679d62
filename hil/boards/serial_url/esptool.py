# SPDX-License-Identifier: Apache-2.0
"""esptool's command line with this project's serial URLs: ``python -m hil.boards.serial_url.esptool …``."""

from __future__ import annotations

import sys

import esptool

from hil.boards.serial_url import register


def main() -> None:
    """Run esptool on ``sys.argv``; it exits the process itself."""
    register()
    esptool._main()


if __name__ == "__main__":
    sys.argv[0] = "esptool"
    main()
