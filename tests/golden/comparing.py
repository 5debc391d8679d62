# SPDX-License-Identifier: Apache-2.0
"""Golden files on disk: what differs from them, told so that a person sees where; and renewing them."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import itertools
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORED, RENDERED = HERE / "stored", HERE / "rendered"
STORED_DIGEST = HERE / "stored.sha256"
RENEW = "python -m tests.golden --renew"
# large, and told by the verdict and the pages too
PACKED = (
    *("series.csv", "comparisons.csv", "junit.xml", "openmetrics.txt"),
    *("site/trend.json", "allure/perf.json"),
)
_LINES_SHOWN = 20
_BEFORE, _AFTER = 60, 140  # characters round the place where a long line differs

Files = dict[str, bytes]  # by path below the folder of golden files


def golden_files(folder: Path = RENDERED) -> Files:
    """Return the golden files by their path below ``folder``, unpacked."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix().removesuffix(".gz"): unpacked(path) for path in found}


def unpacked(path: Path) -> bytes:
    """Return what a file holds, a packed one what was packed."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def digest_of(folder: Path) -> str:
    """Return a digest of all files of a folder, their names included."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def differences(rendered: Files, golden: Files) -> list[str]:
    """Return a text for each file that differs, is missing or is new: its name, and its first lines."""
    told = [difference(name, rendered.get(name), golden.get(name)) for name in sorted({*rendered, *golden})]
    return [text for text in told if text]


def difference(name: str, rendered: bytes | None, golden: bytes | None) -> str:
    """Return what differs between a golden file and what is rendered now, "" where nothing does."""
    if rendered == golden:
        return ""
    if golden is None:
        return f"{name} is rendered, and there is no golden file of it."
    if rendered is None:
        return f"{name} is a golden file, and nothing renders it any more."
    lines = [data.decode("utf-8", "backslashreplace").splitlines() for data in (golden, rendered)]
    shown = list(itertools.islice(_changed(*lines), _LINES_SHOWN))
    return "\n".join([f"{name} differs (- golden, + now):", *(shown or ["  its line ends alone differ"])])


def _changed(golden: list[str], rendered: list[str]) -> list[str]:
    """Return the lines that differ; of long ones what is round the first place that does."""
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, golden, rendered, autojunk=False)
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind == "equal":
            continue
        found.append(f"  line {first + 1}:")
        for old, new in itertools.zip_longest(golden[first:last], rendered[begin:end]):
            at = _first_difference(old or "", new or "")
            found += [
                f"  {sign} {_round(text, at)}" for sign, text in (("-", old), ("+", new)) if text is not None
            ]
    return found


def _first_difference(old: str, new: str) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _round(text: str, at: int) -> str:
    first, last = max(0, at - _BEFORE), at + _AFTER
    return f"{'…' * (first > 0)}{text[first:last]}{'…' * (last < len(text))}"


def renew(rendered: Files) -> None:
    """Replace the golden files by what is rendered now."""
    shutil.rmtree(RENDERED, ignore_errors=True)
    for name, data in rendered.items():
        path = RENDERED / (f"{name}.gz" if name in PACKED else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(data) if name in PACKED else data)
