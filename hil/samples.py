# SPDX-License-Identifier: Apache-2.0
"""What the author of a bench reads a record by: rows whose columns are attributes.

    def test_mybench(measure: Measure) -> None:
        for samples in measure():
            for row in samples.rows(outcome=OK):
                assert row.planned_us <= row.sent_us

A row's repr is the way to it, ``boot[0].row[7]``, so that pytest's sentence on a failed assertion names row,
columns and values: ``5 <= 3, where 5 = boot[0].row[7].planned_us and 3 = boot[0].row[7].sent_us``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.model import RunRecord

T = TypeVar("T")

OK, NOT_DONE, VOID = 0, 1, 2  # of the column `outcome` where a late host makes rows void

_NOT_SENT = "correct the test, or build the firmware of this checkout."
_NO_PARAMETER = "correct the test; thresholds/<bench>.yaml has the parameters."


class Row:
    """One row of the samples; each column is an attribute, an integer."""

    def __init__(self, samples: Samples, number: int) -> None:
        self._samples = samples
        self._number = number

    def __getattr__(self, column: str) -> int:
        if column.startswith("_"):
            raise AttributeError(column)  # Python's own, such as __iter__
        return self._samples.column(column)[self._number]

    def __repr__(self) -> str:
        return f"{self._samples}.row[{self._number}]"


class Samples:
    """The samples of one case from one boot, the warm-up's rows included."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self.parameters = record.parameters

    def __repr__(self) -> str:
        return f"boot[{self._record.boot_index}]"

    @property
    def keeps_time(self) -> bool:
        """Whether the board's clocks agree. An emulated chip's timer loses up to 62.5 ns at each reading."""
        return self._record.kind != "emulated"

    def rows(self, **values: int) -> Sequence[Row]:
        """Return the rows in the board's order; with ``outcome=OK`` those that hold it."""
        wanted = [(self.column(column), value) for column, value in values.items()]
        numbers = range(self._record.rows)
        return [Row(self, n) for n in numbers if all(column[n] == value for column, value in wanted)]

    def column(self, name: str) -> Sequence[int]:
        """Return a column. Raises ConfigError where the board did not send it."""
        return _take(self._record.columns, name, "column", _NOT_SENT)

    def number(self, parameter: str) -> int:
        """Return the case's value of an integer parameter, or of a choice of integers. Raises ConfigError."""
        return int(str(_take(self.parameters, parameter, "parameter", _NO_PARAMETER)))

    def fact(self, name: str) -> int:
        """Return an integer that the bench told by ``bench_environment_int``. Raises ConfigError."""
        return int(str(_take(self._record.environment["device"], name, "fact", _NOT_SENT)))


def _take(values: Mapping[str, T], name: str, what: str, next_step: str) -> T:
    if name not in values:
        hint = did_you_mean(name, values)
        raise ConfigError(f"the bench's test asks for the unknown {what} {name!r}{hint}", next_step=next_step)
    return values[name]


Measure = Callable[[], Sequence[Samples]]
