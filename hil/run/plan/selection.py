# SPDX-License-Identifier: Apache-2.0
"""Which cases a run measures, chosen by a boolean expression.

Its words are suites (``quick``), benches (``publish``), cases as reports name them
(``publish/qos=1,transport=mtls``, ``publish/defaults``) and comparisons with a parameter (``qos=1``,
``payload_bytes>=1024``), joined by and, or, not, brackets::

    quick
    quick and qos=1 and not transport=mtls
    publish/qos=2 or jitter/defaults
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.model import DEFAULTS, Case, Scalar, bench_of, parameters_in

SUITES = ("first", "quick", "pr", "nightly")

_TOKEN = re.compile(
    r"\s*(?:(\(|\))|([A-Za-z_][\w-]*/[^\s()]*)|([A-Za-z_][\w-]*)\s*(<=|>=|!=|=|<|>)\s*([\w.-]+)|([A-Za-z_][\w-]*))"
)
_KEY = re.compile(r"\w+(?=[<>=!])")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class CaseSource(Protocol):
    """What the plan needs of a bench's thresholds file."""

    @property
    def suites(self) -> Mapping[str, tuple[Case, ...]]: ...

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of boards that can measure it."""

    def case(self, overrides: Mapping[str, Scalar]) -> Case:
        """Return the case with these parameters and defaults for the rest. Raises ConfigError."""


def case_of(benches: Mapping[str, CaseSource], name: str) -> Case:
    """Return the case of this name, whether a suite has it or not. Raises ConfigError."""
    bench = bench_of(name)
    if bench not in benches:
        raise ConfigError(
            f"unknown bench {bench!r}{did_you_mean(bench, benches)}",
            next_step="write the case as in reports: bench/key=value,…",
        )
    own = parameters_in(name.removesuffix(f"/{DEFAULTS}"))
    return benches[bench].case({key: _scalar(value) for key, value in own.items()})


def _scalar(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def select_cases(benches: Mapping[str, CaseSource], selection: str) -> tuple[Case, ...]:
    """Return the cases that the expression selects, each once, in the order of the thresholds files."""
    universe = _Universe(benches)
    parser = _Parser(selection, universe)
    accept = parser.parse()
    selected = tuple(case for case in universe.cases.values() if accept(case))
    if not selected:
        near = "; ".join(_near_misses(parser, universe))
        raise ConfigError(
            f"the selection {selection!r} matches none of the {len(universe.cases)} cases"
            f"{'; nearest: ' if near else ''}{near}.",
            next_step="loosen it; `hil plan --suite nightly` lists cases.",
        )
    return selected


def _near_misses(parser: _Parser, universe: _Universe) -> Iterator[str]:
    """Yield what matches all demands but one, for each of them, and what these cases have in its place."""
    for number, (demand, _accept) in enumerate(parser.demands):
        others = [accept for at, (_text, accept) in enumerate(parser.demands) if at != number]
        cases = [case for case in universe.cases.values() if all(accept(case) for accept in others)]
        instead = _instead(demand, cases, universe)
        if cases and (others or instead):
            some = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
            yield f"{some} but for {demand!r}{instead}"


def _instead(demand: str, cases: Sequence[Case], universe: _Universe) -> str:
    """Return the values of a demand's parameter that there are, or the benches; "" where it is neither."""
    key = _KEY.match(demand)
    if key and key[0] in universe.parameters:
        values = sorted({str(case.parameters[key[0]]) for case in cases if key[0] in case.parameters})
        return f" ({key[0]} is {', '.join(values)})" if values else f" (none has {key[0]})"
    benches = dict.fromkeys(case.bench for case in cases)
    return f" (of {', '.join(benches)})" if demand in universe.benches else ""


class _Universe:
    """Every case of every suite, and which suites a case belongs to."""

    def __init__(self, benches: Mapping[str, CaseSource]) -> None:
        self.benches = benches
        self.cases: dict[str, Case] = {}
        self.suites: dict[str, set[str]] = {suite: set() for suite in SUITES}
        for source in benches.values():
            for suite, cases in source.suites.items():
                self.suites.setdefault(suite, set()).update(case.case_id for case in cases)
                self.cases.update((case.case_id, case) for case in cases)

    @property
    def parameters(self) -> list[str]:
        return sorted({key for case in self.cases.values() for key in case.parameters})


_Accept = Callable[[Case], bool]


class _Parser:
    """Recursive descent over ``or``, ``and``, ``not``, brackets, words and comparisons.

    ``demands`` are the parts of a selection that is nothing but parts joined by ``and``, in its words.
    """

    def __init__(self, text: str, universe: _Universe) -> None:
        self.demands: list[tuple[str, _Accept]] = []
        self.text = text
        self.universe = universe
        self.tokens = self._split(text)
        self.position = 0

    def parse(self) -> _Accept:
        accept = self._either()
        if self.position < len(self.tokens):
            raise self._wrong(f"{self._peek()!r} was not expected")
        return accept

    def _split(self, text: str) -> list[tuple[str, ...]]:
        tokens: list[tuple[str, ...]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._wrong(f"{text[position:].strip()!r} is neither a word nor a comparison")
            tokens.append(tuple(part for part in match.groups() if part))
            position = match.end()
        return tokens

    def _wrong(self, what: str) -> ConfigError:
        return ConfigError(
            f"the selection {self.text!r} could not be read: {what}.",
            next_step="write a suite, a bench, a case or key=value, joined by and, or, not.",
        )

    def _peek(self) -> str:
        return " ".join(self.tokens[self.position]) if self.position < len(self.tokens) else ""

    def _take(self, word: str) -> bool:
        if self._peek() != word:
            return False
        self.position += 1
        return True

    def _either(self) -> _Accept:
        options = [self._both()]
        while self._take("or"):
            options.append(self._both())
        return lambda case: any(option(case) for option in options)

    def _both(self) -> _Accept:
        first = self.position
        demands, ends = [self._negated()], [self.position]
        while self._take("and"):
            demands.append(self._negated())
            ends.append(self.position)
        if first == 0 and self.position == len(self.tokens):
            begins = [0, *(end + 1 for end in ends)]
            parts = (self.tokens[begin:end] for begin, end in zip(begins, ends, strict=False))
            texts = (" ".join("".join(token) for token in part) for part in parts)
            self.demands = list(zip(texts, demands, strict=True))
        return lambda case: all(demand(case) for demand in demands)

    def _negated(self) -> _Accept:
        if self._take("not"):
            inner = self._negated()
            return lambda case: not inner(case)
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise self._wrong("a bracket is not closed")
            return inner
        return self._term()

    def _term(self) -> _Accept:
        if self.position >= len(self.tokens):
            raise self._wrong("it ends too early")
        token = self.tokens[self.position]
        self.position += 1
        return self._word(token[0]) if len(token) == 1 else self._comparison(*token)

    def _word(self, word: str) -> _Accept:
        if "/" in word:
            wanted = case_of(self.universe.benches, word).case_id
            return lambda case: case.case_id == wanted
        if word in self.universe.suites:
            members = self.universe.suites[word]
            return lambda case: case.case_id in members
        if word in self.universe.benches:
            return lambda case: case.bench == word
        known = [*self.universe.suites, *self.universe.benches]
        raise self._wrong(
            f"{word!r} is neither suite nor bench{did_you_mean(word, known)} Known: {', '.join(known)}"
        )

    def _comparison(self, key: str, sign: str, text: str) -> _Accept:
        known = self.universe.parameters
        if key not in known:
            hint = did_you_mean(key, known)
            raise self._wrong(f"no bench has a parameter {key!r}{hint} Known: {', '.join(known)}")
        if sign in ("=", "!="):
            return lambda case: (
                key in case.parameters and (str(case.parameters[key]) == text) == (sign == "=")
            )
        try:
            bound = float(text)
        except ValueError:
            raise self._wrong(f"{key}{sign}{text} does not compare with a number") from None
        return lambda case: _holds(case.parameters.get(key), sign, bound)


def _holds(value: Scalar, sign: str, bound: float) -> bool:
    return isinstance(value, int | float) and _COMPARE[sign](float(value), bound)
