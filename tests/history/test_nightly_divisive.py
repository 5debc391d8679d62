# SPDX-License-Identifier: Apache-2.0
"""Steps in a series of nights, and what of Apache Otava had to be worked round for them."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from otava.analysis import TTestSignificanceTester, compute_change_points
from scipy.stats import ttest_ind

from hil.base.errors import ConfigError
from hil.history.nightly.divisive import find_steps, p_value

NOISE = np.random.default_rng(7).normal(0, 0.02, 60)


def otava(logs: np.ndarray) -> list[int]:
    points, _weak = compute_change_points(np.exp(logs).tolist(), max_pvalue=1e-4, min_magnitude=0.03)
    return [point.index for point in points]


@pytest.mark.parametrize("steps", [{40: 0.08}, {20: 0.10, 45: -0.06}])
def test_steps_are_found_where_they_are(steps: dict[int, float]) -> None:
    """`──────┐      ` Each at the first night of its level, and what lies between two is one level.
    `      └──────`
    """
    values = NOISE + sum(size * (np.arange(60) >= night) for night, size in steps.items())
    assert find_steps(values.tolist()) == list(steps)


def test_noise_and_equal_values_have_no_step() -> None:
    """Nothing is found where nothing happened, where nothing varies, and where there is next to nothing."""
    assert find_steps(NOISE.tolist()) == []
    assert find_steps([9.2] * 50) == []
    assert find_steps([]) == find_steps([1.0]) == find_steps([1.0, 2.0, 1.0]) == []


def test_a_step_of_figures_that_do_not_vary() -> None:
    """A size has no noise: the second night at another level is enough, and less than 3 % never is."""
    assert find_steps([0.0] * 10 + [0.05]) == []
    assert find_steps([0.0] * 10 + [0.05] * 2) == [10]
    assert find_steps([0.0] * 10 + [0.02] * 20) == []


@pytest.mark.parametrize("night", [3, 30, 56])
def test_a_single_spike_is_no_change(night: int) -> None:
    """`───┴───` One night of 60 %: Otava makes a level of it (apache/otava#150), here it never is. Nor are
    two beside a normal night: a step must be seen without its most telling night, before and after."""
    quiet = NOISE / 4
    quiet[night] += math.log(1.6)
    assert find_steps(quiet.tolist()) == []
    assert all(find_steps(quiet[:count].tolist()) == [] for count in range(night + 1, 60))
    values = NOISE / 4
    values[-2] += 0.6
    assert find_steps(values.tolist()) == []


def test_otava_makes_a_level_of_a_spike() -> None:
    """Control: what the rule above works round is still so in the version that is pinned."""
    flat = np.zeros(40)
    flat[20] += math.log(1.6)
    assert any(otava(flat[:count]) for count in range(21, 41))


def test_the_t_test_is_students() -> None:
    """ddof=1, as in textbooks; Otava's own, with ddof=0, takes three nights for far surer than they are. One
    night against one says nothing: no freedom, no certainty; without noise two levels are certain."""
    before, after = np.array([10.0, 12.0, 11.0]), np.array([14.0, 15.0])
    expected = ttest_ind(before, after).pvalue
    assert p_value(before, after) == pytest.approx(expected)
    assert TTestSignificanceTester(0.05).compare(before, after).pvalue < 0.6 * expected
    for one, other, found in (
        ([1.0], [2.0], 1.0),
        ([1.0, 1.0], [2.0, 2.0], 0.0),
        ([1.0, 1.0], [1.0, 1.0], 1.0),
    ):
        assert p_value(np.array(one), np.array(other)) == found


def test_a_list_and_an_array_give_the_same() -> None:
    """Otava cuts only a list to its window, so that an array of more nights gives others; here both agree."""
    long = np.random.default_rng(3).normal(0, 0.02, 140) + 0.2 * (np.arange(140) >= 70)
    assert find_steps(long.tolist()) == find_steps(tuple(long)) == [70]


@pytest.mark.parametrize(("module", "package"), [("otava", "apache-otava"), ("scipy", "scipy")])
def test_without_otava_the_way_to_it_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    """An installed package works without Otava and SciPy; who asks for steps is told how to get them."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("otava", module)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "hil.history.nightly.splitting", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    assert find_steps([0.0, 0.0]) == []
    with pytest.raises(ConfigError, match=f"{package} is not installed") as caught:
        find_steps([0.0, 0.0, 1.0, 1.0])
    assert "pip install --no-deps" in caught.value.next_step
