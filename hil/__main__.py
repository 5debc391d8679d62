# SPDX-License-Identifier: Apache-2.0
"""``python -m hil`` is the ``hil`` command."""

from hil.cli import main

if __name__ == "__main__":
    main()
