# SPDX-License-Identifier: Apache-2.0
"""What a thresholds file says of a bench: parameters, suites, metrics, policy, limits.

hil.thresholds reads the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.metrics.metric import Metric
from hil.model import DEFAULTS, KINDS, Case, RunRecord, Scalar
from hil.thresholds.limits import Advice, CompareRule, Limit, Suppression

# What a bench may need on the host beside the broker; hil.network.peers.companion knows what does it.
PEERS = ("iperf", "http", "interruption", "delivery", "echo")


@dataclass(frozen=True)
class Parameter:
    """The domain of a bench's parameter: an integer within a range, or one of some texts.

    Where it is ``named``, a case's label has it though it is the default: it says what is measured.
    """

    name: str
    default: Scalar
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = 0
    named: bool = False

    def check(self, value: Scalar) -> Scalar:
        """Return ``value`` as the case holds it (choices are text). Raises ValueError with the domain."""
        if self.choices:
            if isinstance(value, bool) or str(value) not in self.choices:
                hint = did_you_mean(str(value), self.choices)
                raise ValueError(f"is {value!r}{hint} Choices: {', '.join(self.choices)}.")
            return str(value)
        if type(value) is not int or not self.minimum <= value <= self.maximum:
            raise ValueError(f"is {value!r}; expected an integer from {self.minimum} to {self.maximum}.")
        return value


@dataclass(frozen=True)
class Policy:
    """``alpha`` is the share of clean runs that may be blocked, over all blocking decisions together.

    A metric of whose rows more than ``max_void_ratio`` are void is undecided.

    Of comparisons: a change beyond ``tolerance`` passes with probability ``beta``, a smaller one than
    ``min_effect`` never blocks (both relative); ``max_boots`` are a board's, candidate and base together.
    Without a sign of a change it is enough for a pass that ``blind_below`` times the tolerance would have
    been seen.
    """

    alpha: float = 0.01
    min_samples: int = 50
    on_undecided: Literal["neutral", "fail"] = "neutral"
    max_void_ratio: float = 0.2
    beta: float = 0.05
    tolerance: float = 0.10
    min_effect: float = 0.03
    max_boots: int = 40
    blind_below: float = 2.0


@dataclass(frozen=True)
class Thresholds:
    """One thresholds file. ``source`` names it in sentences; ``peer`` is one of PEERS, "" where none is.

    ``alone`` says that the rack does nothing else while one of its cases is measured; ``kinds`` are those of
    the boards that can. ``owner`` is whom to ask, "" where the file names nobody.
    """

    bench: str
    parameters: Mapping[str, Parameter]
    suites: Mapping[str, tuple[Case, ...]]
    metrics: Mapping[str, Metric]
    policy: Policy
    limits: tuple[Limit, ...]
    advice: tuple[Advice, ...]
    suppressions: tuple[Suppression, ...]
    source: str
    peer: str = ""
    alone: bool = False
    kinds: Sequence[str] = KINDS
    compare: tuple[CompareRule, ...] = ()
    owner: str = ""

    def cases(self, suite: str) -> tuple[Case, ...]:
        """Return the cases of a suite, defaults filled in. Raises ConfigError where there is none."""
        if suite not in self.suites:
            hint = f"{did_you_mean(suite, self.suites)} It has: {', '.join(self.suites) or 'none'}."
            raise ConfigError(f"{self.source}: bench {self.bench!r} has no suite {suite!r}{hint}")
        return self.suites[suite]

    def case(self, overrides: Mapping[str, Scalar]) -> Case:
        """Return the case with these parameters and defaults for the rest. Raises ConfigError."""
        for name in overrides:
            if name not in self.parameters:
                hint = did_you_mean(name, self.parameters)
                known = ", ".join(self.parameters)
                raise ConfigError(
                    f"bench {self.bench!r} has no parameter {name!r}{hint} Parameters: {known}."
                )
        values = {}
        for name, parameter in self.parameters.items():
            try:
                values[name] = parameter.check(overrides.get(name, parameter.default))
            except ValueError as error:
                raise ConfigError(f"parameter {name!r} of bench {self.bench!r} {error}") from None
        return Case(self.bench, values)

    def metrics_of(
        self, parameters: Mapping[str, Scalar], records: Iterable[RunRecord] = ()
    ) -> tuple[Metric, ...]:
        """Return the metrics of a case, in the file's order; those of a meter where a record has them."""
        found = [metric for metric in self.metrics.values() if metric.applies_to(parameters)]
        own = list(records)
        return tuple(m for m in found if not m.is_metered or any(map(m.is_in, own)))

    def case_label(self, parameters: Mapping[str, Scalar]) -> str:
        """Name a case by what differs from its default, and by what always names it, in the file's order."""
        own = [
            f"{name}={parameters[name]}"
            for name, parameter in self.parameters.items()
            if name in parameters and (parameter.named or str(parameters[name]) != str(parameter.default))
        ]
        return ",".join(own) or DEFAULTS
