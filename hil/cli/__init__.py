# SPDX-License-Identifier: Apache-2.0
"""The ``hil`` command."""

from __future__ import annotations

import sys
from typing import NoReturn

from hil.base.errors import ExitCode, HilError
from hil.base.program import (
    keep_streams_open,
    leave_no_core,
    require_descriptors,
    require_home,
    require_memory,
)


def main() -> NoReturn:
    """Run the command line and exit with its code; with the rig's where it has not what it needs."""
    keep_streams_open()
    leave_no_core()
    try:
        require_memory()
        require_descriptors()
        require_home()
        from hil.cli import app
    except HilError as error:
        print(f"hil: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    except Exception as error:
        print(f"hil: the program could not be loaded: {error!r}. There is no verdict.", file=sys.stderr)
        sys.exit(int(ExitCode.RIG))
    app.main()


__all__ = ["main"]
