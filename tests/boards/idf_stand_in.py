# SPDX-License-Identifier: Apache-2.0
"""An idf.py that builds without ESP-IDF: what it does is the test's, the images are made once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lab import ROOT

# It makes an image around any program; one of the same options is copied from then on.
_BEGIN = """\
#!{python}
import hashlib, json, os, re, shutil, sys
from pathlib import Path

def make_image(folder, **options):
    made = Path({made!r}, hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest())
    if not made.exists():
        sys.path.insert(0, {root!r})
        from hil.boards.firmware.image import build_image_dir
        build_image_dir(Path("/bin/true"), made, **options)
    shutil.copytree(made, folder, dirs_exist_ok=True)

words = sys.argv[1:]
folder = Path(words[words.index("-B") + 1])
defined = dict(word[2:].split("=", 1) for word in words if word.startswith("-D"))
"""


def put_idf(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an idf.py on PATH that runs ``program``: with its ``words``, the build's ``folder``, what is
    ``defined``, and ``make_image``, whose images all tests of a session share."""
    path = tmp_path / "bin" / "idf.py"
    path.parent.mkdir()
    made = tmp_path.parent / "images-made"
    path.write_text(_BEGIN.format(python=sys.executable, root=str(ROOT), made=str(made)) + program)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
