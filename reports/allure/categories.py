"""Whose a failure is: how each message begins, and the categories that Allure sorts results into by it."""

from __future__ import annotations

from typing import Final, TypedDict


class Category(TypedDict):
    """As Allure 2 reads it from categories.json, and Allure 3 from the key ``categories`` of its config."""

    name: str
    matchedStatuses: list[str]
    messageRegex: str


REGRESSION: Final = "regression"
FIRMWARE: Final = "firmware"
RIG: Final = "rig"
CONFIGURATION: Final = "configuration"
INCONCLUSIVE: Final = "inconclusive"
NOT_RUN: Final = "not run"

# first word of the message → status, name of the category
_MEANINGS = {
    REGRESSION: ("failed", "Regression"),
    FIRMWARE: ("failed", "Firmware fault"),
    RIG: ("broken", "Rig trouble"),
    CONFIGURATION: ("broken", "Configuration"),
    INCONCLUSIVE: ("unknown", "Inconclusive"),
    NOT_RUN: ("skipped", "Not run"),
}

# Allure 2 matches a pattern with the whole message, Allure 3 searches for it: this one suits both
CATEGORIES: list[Category] = [
    {"name": name, "matchedStatuses": [status], "messageRegex": f"^{word}: .*"}
    for word, (status, name) in _MEANINGS.items()
]


def status_of(word: str) -> str:
    """Return Allure's status for a message that begins with ``word``."""
    return _MEANINGS[word][0]
