# SPDX-License-Identifier: Apache-2.0
"""Why a base is missing: its own sources, which is a fact of that commit, or whatever befell the build."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RefusedSourcesError
from hil.boards.firmware.failure import read_failure, refuses_sources, told


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("{sources}/main/app.c:7:3: error: expected ';' before 'return'", True),
        ("CMake Error at CMakeLists.txt:12 (include):\n  include could not find requested file:", True),
        ("{sources}/main/app.c:7:3: error: x\ncc1: out of memory allocating 65536 bytes", False),
        ("{sources}/main/app.c:7:3: error: x\nerror: writing a.s: No space left on device", False),
        ("{sources}/main/app.c:1:10: fatal error: openssl/ssl.h: No such file or directory", False),
        ("/usr/include/stdio.h:7:3: error: unknown type name", False),
        ("cc: fatal error: Killed signal terminated program cc1", False),
        ("CMake Error at CMakeLists.txt:3 (project):\n  No CMAKE_C_COMPILER could be found.", False),
        ("ninja: fatal: pipe: Too many open files", False),
    ],
)
def test_only_a_compiler_that_refuses_the_sources_proves_that_they_do_not_build(
    tmp_path: Path, said: str, refused: bool
) -> None:
    """A disk that is full, a library or a tool that is missing, a process that was killed prove nothing."""
    log = tmp_path / "build.log"
    log.write_text(f"$ cmake --build x\n[1/9] cc\n{said.format(sources=tmp_path / 'firmware')}\n")
    assert refuses_sources(log, tmp_path / "firmware") is refused


@pytest.mark.parametrize(("kind", "cause"), [(RefusedSourcesError, "sources"), (ConfigError, "unknown")])
def test_a_failed_build_tells_its_cause_as_data(tmp_path: Path, kind: type[ConfigError], cause: str) -> None:
    """The error goes on; the file has cause and sentence for the run that has no base."""
    path = tmp_path / "bundle" / "failure.json"
    with pytest.raises(kind), told(path):
        raise kind("the build failed: x.c:1: error.")
    assert read_failure(path) == (cause, "the build failed: x.c:1: error")
    with told(path):
        pass
    assert not path.exists()  # the next build went well


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "unknown"),
        (b"", "unknown"),
        (b"[]", "unknown"),
        (b'{"schema": 9, "cause": "sources", "sentence": "x"}', "unknown"),
        (b'{"schema": 1, "cause": "identical", "sentence": "x"}', "identical"),
    ],
)
def test_without_a_word_of_ours_the_cause_is_unknown(
    tmp_path: Path, content: bytes | None, cause: str
) -> None:
    """A killed build leaves no file, a lost artefact neither; what cannot be read proves nothing. A base that
    is the head itself has a cause of its own."""
    path = tmp_path / "failure.json"
    if content is not None:
        path.write_bytes(content)
    found, reason = read_failure(path)
    assert found == cause
    assert reason
