# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tools.planted_faults import Fault, load_faults


@pytest.mark.parametrize("fault", load_faults(), ids=lambda fault: fault.id)
def test_each_fault_has_its_place(fault: Fault) -> None:
    """The place of a fault occurs once, within a function, and the file compiles with the fault planted."""
    text = fault.path.read_text(encoding="utf-8")
    for changed in (fault.planted(text), fault.recorded(text, Path("record"))):
        assert changed != text
        compile(changed, fault.file, "exec")
