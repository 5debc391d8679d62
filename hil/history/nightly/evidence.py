"""Whether chance explains a group of steps: of hundreds of series over months, some step by chance alone.

The p of a step is multiplied by how many series and nights it was looked for in (Bonferroni). Boards agree
independently on a firmware's step, so theirs are combined (Fisher 1925); series of one board share its
boots and boards of one rack its air, so of these the clearest counts alone.
"""

from __future__ import annotations

import math

import scipy.special

from hil.history.nightly.event_parts import Group, split
from hil.history.nightly.survey import Finding, Survey

ALPHA = 0.05  # of how many histories in which nothing happens chance may make an event, by this reckoning
_LEAST_P = 1e-300


def is_certain(group: Group, survey: Survey) -> bool:
    """Whether more than chance is needed for these steps among all that were looked for."""
    longest = max(map(len, survey.judged.values()), default=1)
    looked = math.log(max(1, len(survey.judged)) * longest)
    return _log_p(group) + looked <= math.log(ALPHA)


def _log_p(group: Group) -> float:
    boards = split(group.findings, lambda finding: (finding.name.rack, finding.name.board))
    own = [min(map(_log_p_of, part)) for part in boards]
    if group.cause != "firmware":
        return min(own)
    p = float(scipy.special.chdtrc(2 * len(own), -2.0 * sum(own)))
    return math.log(p) if p else -math.inf


def _log_p_of(finding: Finding) -> float:
    return math.log(max(finding.point.p_value, _LEAST_P))
