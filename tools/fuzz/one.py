# SPDX-License-Identifier: Apache-2.0
"""Fuzz one reader: ``python -m tools.fuzz.one NAME [libFuzzer's options] [corpus ...]``."""

from __future__ import annotations

import sys

import atheris

from tools.fuzz import TARGETS, target


def main() -> None:
    name = sys.argv.pop(1)
    target.counts_branches = True
    chosen = next(one for one in TARGETS if one.name == name)
    more = {"custom_mutator": chosen.mutator} if chosen.mutator else {}
    atheris.Setup(sys.argv, chosen.make(), **more)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
