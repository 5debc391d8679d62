"""What makes two results the same test: rack, board and case; never commit, run, port or path.

allure-pytest reckons the same from the items of hil/benches, which tests hold it to.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "hil/reports/allure")


def full_name(bench: str) -> str:
    """Return allure-pytest's name of a bench's test function."""
    return f"hil.benches.test_{bench}#test_{bench}"


def parameters_of(rack: str, board: str, label: str) -> dict[str, str]:
    """Return what distinguishes the results of a bench.

    A case goes by the parameters that differ from their defaults, so its history goes on when the bench gets
    another parameter with a default.
    """
    return {"rack": rack, "board": board, "case": label}


def history_id(name: str, parameters: Mapping[str, str]) -> str:
    """Return Allure's id of a test with these parameters; ``name`` is its full name."""
    return _digest(name, *(parameters[key] for key in sorted(parameters)))


def case_id_of(name: str) -> str:
    return _digest(name)


def _digest(*words: str) -> str:
    """Return what names things in Allure's formats; nothing is kept safe by it."""
    return hashlib.md5("".join(words).encode(), usedforsecurity=False).hexdigest()


def stable_uuid(*words: str) -> str:
    """Return the same UUID for the same words, so that a second completion overwrites the first."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join(words)))
