# SPDX-License-Identifier: Apache-2.0
"""``hil limit``: a limit for what a run measured, written with where it comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import click

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_THRESHOLDS, TOOL_THRESHOLDS
from hil.base.units import QuantityError, find_unit, format_value, parse_quantity
from hil.base.yamlvalue import did_you_mean
from hil.cli.options import DEFAULT_OUT, FOLDER, write_text
from hil.gate.limits import facts_of
from hil.model import RunRecord, SeriesVerdict
from hil.store import read_judged_run
from hil.store.files import typed_path
from hil.store.judged import JudgedRun
from hil.thresholds.limits import most_specific
from hil.thresholds.types import Thresholds
from hil.thresholds.writing import NewLimit, check, with_limit

Bound = Literal["max", "min"]
_QUANTITY = re.compile(r"([-+.\deE]+)\s*(\S.*)")


@click.command("limit")
@click.argument("metric")
@click.argument("run", type=FOLDER, required=False)
@click.option("--max", "most", metavar="VALUE", help="The largest allowed value, such as 25ms.")
@click.option("--min", "least", metavar="VALUE", help="The smallest allowed value, such as 6Mbit/s.")
def command(metric: str, run: Path | None, most: str | None, least: str | None) -> None:
    """Set a limit for a metric of a run: RUN, or the newest.

    The limit is written to the bench's thresholds file, with the measured value as its reason. It holds for
    all cases and boards of the run's kind; more specific limits stay and are listed. A METRIC that the run
    has not measured lists those that it has.
    """
    if (most is None) == (least is None):
        raise ConfigError(
            "give exactly one of --max and --min.", next_step="hil limit METRIC --max VALUE, or --min VALUE."
        )
    judged = read_judged_run(run or DEFAULT_OUT / "latest")
    series = _measured(judged, metric)
    bound: Bound = "max" if most is not None else "min"
    for kind in sorted({item.kind for item in series}):
        _write(judged, [item for item in series if item.kind == kind], bound, most or least or "")


def _measured(run: JudgedRun, metric: str) -> list[SeriesVerdict]:
    """Return what a run measured of a metric, whose name may lack its unit. Raises ConfigError."""
    found = [item for item in run.verdict.series if item.value is not None]
    series = [item for item in found if metric in (item.metric, item.metric.removesuffix(f"_{item.unit}"))]
    if not series:
        known = sorted({item.metric for item in found})
        raise ConfigError(
            f"{run.path.name} has measured no {metric!r}{did_you_mean(metric, known)}",
            next_step=f"it has: {', '.join(known) or 'nothing'}.",
        )
    return series


def _write(run: JudgedRun, series: Sequence[SeriesVerdict], bound: Bound, asked: str) -> None:
    one, bench = series[0], series[0].case_id.partition("/")[0]
    right: Bound = "max" if one.direction == "lower" else "min"
    if bound != right:
        raise ConfigError(
            f"for {one.metric}, {one.direction} is better, so no run can break a limit with --{bound}.",
            next_step=f"hil limit {one.metric} --{right} {asked}.",
        )
    path = PROJECT_THRESHOLDS / f"{bench}.yaml"
    origin = path if path.is_file() else TOOL_THRESHOLDS / path.name
    records = [record for record in run.records if record.bench == bench and record.kind == one.kind]
    new = _limit(run, series, records, bound, asked)
    text = with_limit(origin.read_text(encoding="utf-8"), new)
    thresholds = check(text, bench)
    write_text(path, text)
    copied = "" if origin == path else ", a copy of hil's own, which it replaces"
    click.echo(f"{os.path.relpath(path)}{copied}: {one.metric} {new.bound} ({new.why})")
    for sentence in (*_exceeded(series, bound, asked), *_others(thresholds, series, records, new)):
        click.echo(sentence)
    click.echo(f"Next: hil gate {typed_path(run.path)} --thresholds {os.path.relpath(path.parent)}")


def _limit(
    run: JudgedRun, series: Sequence[SeriesVerdict], records: Sequence[RunRecord], bound: Bound, asked: str
) -> NewLimit:
    one = series[0]
    air = str(records[0].environment.get("access_point", {}).get("profile", ""))
    where = {"metric": one.metric, "kind": one.kind, **({"air": air} if air else {})}
    values = sorted({item.value for item in series if item.value is not None})
    unit = find_unit(one.unit)
    measured = " to ".join(format_value(value, unit) for value in dict.fromkeys((values[0], values[-1])))
    boards = ", ".join(sorted({item.board for item in series}))
    commit = run.info.git.commit[:12]
    since = {"date": str(run.info.day), **({"commit": f"'{commit}'"} if commit else {})}
    since |= {"board": f"'{boards}'", "n": str(sum(item.samples for item in series))}
    why = f"measured {measured} in run {run.run_id}"
    return NewLimit(where, f"abs_{bound}_{_key(asked, one.unit)}", why, since)


def _key(asked: str, unit: str) -> str:
    """Return unit and number of a limit as they stand in a file, in the unit that was typed."""
    match = _QUANTITY.fullmatch(asked.strip())
    try:
        parse_quantity(asked, unit)
        name = find_unit(match[2]).name if match else ""
    except QuantityError as error:
        raise ConfigError(f"the limit {asked!r}: {error}.", next_step=f"write it as 25{unit}.") from error
    assert match  # it is a quantity
    return f"{name}: {float(match[1]):g}"


def _exceeded(series: Sequence[SeriesVerdict], bound: Bound, asked: str) -> Iterable[str]:
    """Yield what exceeds the limit already; the gate says whether provably."""
    limit = parse_quantity(asked, series[0].unit)
    for item in series:
        assert item.value is not None
        if item.value > limit if bound == "max" else item.value < limit:
            value = format_value(item.value, find_unit(item.unit))
            yield f"Exceeded already: {value} on {item.board}, {item.case_label or 'defaults'}"


def _others(
    thresholds: Thresholds, series: Sequence[SeriesVerdict], records: Sequence[RunRecord], new: NewLimit
) -> Iterable[str]:
    """Yield the more specific limits that count in the place of the new one."""
    found = set()
    for record in records:
        for metric in thresholds.metrics_of(record.parameters):
            if metric.name == series[0].metric:
                limit = most_specific(thresholds.limits, facts_of(metric, record))
                found.add(
                    str(limit.where) if limit and dict(limit.where.conditions) != dict(new.where) else ""
                )
    yield from (f"A more specific limit counts for {where}" for where in sorted(filter(None, found)))
