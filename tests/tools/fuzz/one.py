# SPDX-License-Identifier: Apache-2.0
"""Fuzz one reader: ``python -m tests.tools.fuzz.one NAME [libFuzzer's options] [corpus ...]``."""

from __future__ import annotations

import sys

import atheris

from tests.tools.fuzz import targets


def main() -> None:
    name = sys.argv.pop(1)
    targets.counts_branches = True
    target = next(one for one in targets.TARGETS if one.name == name)
    more = {"custom_mutator": target.mutator} if target.mutator else {}
    atheris.Setup(sys.argv, target.make(), **more)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
