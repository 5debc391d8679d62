# SPDX-License-Identifier: Apache-2.0
"""What a target of fuzzing is, and what most of them are made of."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import atheris

from tools.fuzz import mutate

ROOT = Path(__file__).resolve().parents[2]
Fuzz = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """``make`` imports what is fuzzed, instrumented, and returns the function that takes an input.

    ``seeds`` are the first inputs. ``mutator`` changes one and keeps its form.
    """

    name: str
    make: Callable[[], Fuzz]
    seeds: Callable[[], Iterator[bytes]]
    mutator: mutate.Mutator | None = None
    bytes_max: int = 4096


counts_branches = False  # in a process that fuzzes; elsewhere an input is only tried


def instrumented() -> AbstractContextManager[None]:
    """Count the branches of what is imported meanwhile and is ours."""
    return atheris.instrument_imports(include=["hil"]) if counts_branches else nullcontext()


def one_of(*kinds: Fuzz) -> Fuzz:
    """Return what hands an input to the function that its first byte chooses."""

    def fuzz(data: bytes) -> None:
        if data:
            kinds[data[0] % len(kinds)](data[1:])

    return fuzz


def refuses(read: Callable[[bytes], object]) -> Fuzz:
    """Return a function that hands an input to a reader, which may only refuse it in a sentence of ours."""
    from hil.base.errors import HilError

    def fuzz(data: bytes) -> None:
        with suppress(HilError):
            read(data)

    return fuzz


def of_file(name: str, read: Callable[[Path], object]) -> Fuzz:
    """Return what reads an input as a file of this name."""
    path = Path(tempfile.mkdtemp()) / name
    path.parent.mkdir(exist_ok=True)

    def from_file(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return refuses(from_file)
