"""``digests.json``: what a build in a bundle is, and the SHA-256 of each of its files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import is_inside
from hil.boards.firmware.variant import DEFAULT_TICK_HZ, Image

SCHEMA = 1
DIGESTS = "digests.json"
NO_IDF = "host"  # idf_version of a build for virtual boards, which the host's compiler made

_TYPES = {
    "target": str,
    "tick_hz": int,
    "commit": str,
    "dirty": bool,
    "idf_version": str,
    "image_sha256": str,
    "files": dict,
}
_LATER = {"tick_hz": DEFAULT_TICK_HZ}  # what older files do not say


@dataclass(frozen=True)
class Digests:
    """The content of digests.json (docs/schema/digests.schema.json).

    ``image_sha256`` is the digest that the app image carries and the board reports of what it runs; ``files``
    maps the name of each file in the folder but digests.json to the SHA-256 of its content.
    """

    target: str
    commit: str
    dirty: bool
    idf_version: str
    image_sha256: str
    files: Mapping[str, str]
    tick_hz: int = DEFAULT_TICK_HZ

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **dataclasses.asdict(self), "files": dict(sorted(self.files.items()))}

    @property
    def image(self) -> Image:
        """What was built; its name is the folder's."""
        return Image(self.target, self.tick_hz)

    @property
    def origin(self) -> dict[str, object]:
        """What a run notes of the build besides its image's digest."""
        return {"commit": self.commit, "dirty": self.dirty, "idf_version": self.idf_version}


def write_digests(folder: Path, digests: Digests) -> None:
    """Write digests.json in ``folder``. Raises OSError."""
    text = json.dumps(digests.to_json(), indent=2, ensure_ascii=False) + "\n"
    (folder / DIGESTS).write_text(text, encoding="utf-8")


def read_digests(folder: Path) -> Digests:
    """Return what digests.json in ``folder`` says. Raises ConfigError where it is missing or no such file."""
    path = folder / DIGESTS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{folder} holds no {DIGESTS}, so what was built cannot be compared with what is there.",
            next_step="make a bundle: hil build --target TARGET --bundle DIR.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", next_step=DAMAGED) from error
    content = {**_LATER, **content} if isinstance(content, dict) else content
    wrong = _wrong(content)
    if wrong:
        raise ConfigError(f"{path}: {wrong}.", next_step=DAMAGED)
    return Digests(**{key: content[key] for key in _TYPES})


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wrong(content: object) -> str:
    """Return what is wrong with the content of digests.json, "" where it is right."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        return f"not in format {SCHEMA}"
    for key, kind in _TYPES.items():
        if type(content.get(key)) is not kind:
            return f"{key} is {content.get(key)!r}"
    for name, digest in content["files"].items():
        if not is_inside(name) or not isinstance(digest, str):
            return f"files holds {name!r}: {digest!r}"
    return ""


DAMAGED = (
    "fetch the bundle again, or build it again; it was damaged or altered after the build, for which neither "
    "the firmware nor the rack is at fault."
)
