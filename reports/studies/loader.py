# SPDX-License-Identifier: Apache-2.0
"""Read a study's file, strictly: a mistake names file, line and the nearest key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from hil.base.errors import ConfigError
from hil.base.paths import PACKAGE
from hil.base.units import QuantityError, find_unit
from hil.base.yamlfile import Node, loads, read_text
from hil.base.yamlfile import load as load_yaml
from hil.base.yamlvalue import did_you_mean
from hil.reports.studies.declaration import (
    APPLICATION_KINDS,
    BY_FACT,
    CLAIM_KINDS,
    DIRECTIONS,
    NOT_MEASURABLE,
    RELATIONS,
    SAMPLE_COLUMNS,
    STATISTICS,
    Application,
    Background,
    BackgroundRow,
    Claim,
    ClaimTest,
    Comparison,
    Drawing,
    Layout,
    Published,
    Row,
    Shown,
    Study,
)
from hil.thresholds import Thresholds

SIZES = ("quick", "full")


def sample_value(node: Node, key: str, bench: str) -> int:
    """Return the value that a column must have, of those by which the bench's samples are told apart."""
    known = SAMPLE_COLUMNS.get(bench, ())
    if key not in known:
        hint = f"{did_you_mean(key, known)} Known columns: {', '.join(known) or 'none'}."
        raise node.error(key, f"samples of the bench {bench!r} are not told apart by {key!r}{hint}")
    return node.integer(key)


def read_unit(node: Node) -> str:
    """Return the unit that the key ``unit`` names. Raises ConfigError."""
    unit = node.text("unit")
    try:
        return find_unit(unit).name
    except QuantityError as error:
        raise node.error("unit", f"{error}.") from None


def read_boots(node: Node) -> dict[str, int]:
    """Read how many boots each size has. Raises ConfigError."""
    return {size: node.integer(size, minimum=1, maximum=100) for size in SIZES}


def read_background(node: Node) -> Background:
    """Read a table of others. Raises ConfigError."""
    columns = tuple(node.texts("columns"))
    rows = tuple(_background_row(part, columns) for part in node.sections("rows"))
    return Background(
        id=node.text("id"),
        title=node.text("title"),
        unit=read_unit(node),
        source=node.text("source"),
        remark=node.text("remark"),
        columns=columns,
        rows=rows,
    )


def _background_row(node: Node, columns: Sequence[str]) -> BackgroundRow:
    values = tuple(node.scalars("values"))
    if len(values) != len(columns):
        raise node.error("values", f"{len(values)} values for {len(columns)} columns.")
    return BackgroundRow(node.text("label"), values)


_NEEDS_REMARK = {
    BY_FACT: "a claim that facts decide needs a 'remark' with the fact.",
    NOT_MEASURABLE: "a claim that nothing here can decide needs a 'remark' that says why.",
}


def read_shown(node: Node, questions: Sequence[str], claims: Sequence[Claim]) -> Shown:
    """Read a section of the page. Raises ConfigError."""
    remarks, virtual, tables, names = (
        tuple(node.texts(key, default=[])) for key in ("remarks", "virtual", "tables", "claims")
    )
    known = {claim.id: claim for claim in claims}
    for name in names:
        if name not in known:
            raise node.error("claims", f"there is no claim {name!r}{did_you_mean(name, known)}")
    number = node.integer("question", default=0, minimum=1, maximum=len(questions))
    heading = f"Question: {questions[number - 1]}" if number else node.text("heading")
    key = f"question {number}" if number else heading
    return Shown(key, heading, remarks, virtual, tables, tuple(known[name] for name in names))


def read_layouts(node: Node | None) -> dict[str, Layout]:
    """Read how tables of ours are shown, by their ids. Raises ConfigError."""
    parts = {name: node.section(name) for name in node.keys} if node else {}
    return {name: _layout(part) for name, part in parts.items()}


def _layout(node: Node) -> Layout:
    columns = node.section("columns")
    heads = {key: columns.text(key, empty=True) for key in columns.keys}
    notes = tuple(node.texts("notes", default=[]))
    picture = _drawing(part) if (part := node.section("picture", default=None)) else None
    return Layout(node.text("title"), heads, notes, node.boolean("measured", default=True), picture)


def _drawing(node: Node) -> Drawing:
    lines = node.section("lines")
    names = {key: lines.text(key) for key in lines.keys}
    title, by = (node.text(key, default="") for key in ("title", "by"))
    return Drawing(node.text("x"), node.text("unit"), names, title, by)


def read_application(node: Node) -> Application:
    """Read a use of the link. Raises ConfigError."""
    kind = cast(Literal["stream", "transfer", "messages"], node.choice("kind", APPLICATION_KINDS))
    streams = kind == "stream"
    return Application(
        name=node.text("name"),
        kind=kind,
        direction=cast(Literal["receive", "send"], node.choice("direction", DIRECTIONS)),
        rate_kbps=node.quantity("rate", "kbps", minimum=0.001) if streams else 0.0,
        size_bytes=0 if streams else node.integer("size_bytes", minimum=1),
        source=node.text("source"),
    )


PUBLISHED = (PACKAGE / "reports" / "studies").resolve()
KEPT_FOLDER = "thresholds/reference"  # of a run, which keeps a copy of what it was set beside
SCHEMA_VERSION = 1


def study_files(root: Path = PUBLISHED) -> dict[str, Path]:
    """Return the files of the studies there are below a folder, by their names."""
    return {path.stem: path for path in sorted(root.rglob("*.yaml"))}


def study_of_suite(suite: str, root: Path = PUBLISHED) -> Study | None:
    """Return the study whose suite this is, None where none has it. Raises ConfigError as load_study().

    Each run asks, and a study takes a tenth of a second: one that does not name the suite is not parsed.
    """
    said = re.compile(rf"(?<![\w-]){re.escape(suite)}(?![\w:-])")  # not as a key, such as `quick:`
    for name, path in study_files(root).items():
        text = read_text(path, label=_label(path, root))
        if said.search(text):
            study = _Reader(loads(text, label=_label(path, root)), None).read(name)
            if suite in study.suites.values():
                return study
    return None


def load_study(
    name: str, root: Path = PUBLISHED, *, benches: Mapping[str, Thresholds] | None = None
) -> Study:
    """Read ``<name>.yaml`` below ``root``. With ``benches``, its cases must name parameters that they have.

    Raises:
        ConfigError: there is no such study, or anything is wrong in its file.
    """
    known = study_files(root)
    if name not in known:
        hint = f"{did_you_mean(name, known)} Studies: {', '.join(known) or 'none'}."
        raise ConfigError(f"there is no study {name!r}{hint}")
    path = known[name]
    return _Reader(load_yaml(path, label=_label(path, root)), benches).read(name)


def _label(path: Path, root: Path) -> str:
    return "/".join((root.parent.name, root.name, *path.relative_to(root).parts))


class _Reader:
    def __init__(self, node: Node, benches: Mapping[str, Thresholds] | None) -> None:
        self.node = node
        self.benches = benches

    def read(self, name: str) -> Study:
        node = self.node
        node.integer("schema", minimum=SCHEMA_VERSION, maximum=SCHEMA_VERSION)
        study_id = node.text("study")
        if study_id != name:
            raise node.error("study", f"study {study_id!r} must have the file's name, {name!r}.")
        tables, questions = tuple(map(self._table, node.sections("tables"))), tuple(node.texts("questions"))
        claims = tuple(self._claim(part, tables) for part in node.sections("claims", default=[]))
        study = Study(
            id=study_id,
            title=node.text("title"),
            authors=tuple(node.texts("authors")),
            year=node.integer("year", minimum=1980, maximum=2100),
            source=node.text("source"),
            questions=questions,
            setup=tuple(node.texts("setup")),
            excluded=tuple(node.texts("excluded", default=[])),
            suites=self._suites(node.section("suites")),
            boots=read_boots(node.section("boots")),
            tables=tables,
            background=tuple(map(read_background, node.sections("background", default=[]))),
            claims=claims,
            applications=tuple(map(read_application, node.sections("applications", default=[]))),
            shown=read_layouts(node.section("shown", default=None)),
            sections=tuple(
                read_shown(part, questions, claims) for part in node.sections("sections", default=[])
            ),
        )
        node.finish()
        _refuse_twice(node, "tables", [table.id for table in study.tables])
        _refuse_twice(node, "claims", [claim.id for claim in study.claims])
        return study

    def _suites(self, node: Node) -> dict[str, str]:
        suites = {size: node.text(size) for size in SIZES}
        known = [suite for bench in (self.benches or {}).values() for suite in bench.suites]
        for size, suite in suites.items():
            if self.benches is not None and suite not in known:
                hint = did_you_mean(suite, known)
                raise node.error(size, f"no thresholds file has a suite {suite!r}{hint}")
        return suites

    def _table(self, node: Node) -> Published:
        ours = self._comparison(node.section("ours", default=None), None)
        rows = tuple(self._row(part, ours) for part in node.sections("rows", default=[]))
        table = Published(
            id=node.text("id"),
            title=node.text("title"),
            unit=read_unit(node),
            n=node.integer("n", minimum=1),
            lost=node.text("lost", default=""),
            defects=tuple(node.texts("defects", default=[])),
            sweep=node.text("sweep", default=""),
            ours=ours,
            rows=rows,
        )
        if table.lost and rows:
            raise node.error("lost", "a lost table has no rows.")
        if not rows and not table.sweep:
            raise node.error("", f"{node.name} has neither rows nor a sweep.", next_step="add 'rows: …'.")
        if table.sweep and ours is None:
            raise node.error("sweep", "a sweep needs 'ours', which says in which bench.")
        if table.sweep and ours is not None:
            self._require_parameter(node, "sweep", ours.bench, table.sweep)
        return table

    def _row(self, node: Node, table: Comparison | None) -> Row:
        corrected = node.section("corrected", default=None)
        row = Row(
            label=node.text("label"),
            published=node.number("published"),
            of=node.integer("of", default=None, minimum=1),
            defect=node.text("defect", default=""),
            corrected=corrected.number("value", default=None) if corrected else None,
            formula=corrected.text("formula", default="") if corrected else "",
            why=corrected.text("why") if corrected else "",
            ours=self._comparison(node.section("ours", default=None), table) or table,
            both_ends=node.boolean("both_ends", default=False),
            statistic=node.choice("statistic", STATISTICS, default=""),
            n=node.integer("n", default=None, minimum=1),
        )
        if corrected and row.corrected is None and not row.formula:
            raise node.error("corrected", "'corrected' has neither a 'value' nor a 'formula'.")
        return row

    def _comparison(self, node: Node | None, base: Comparison | None) -> Comparison | None:
        """Return what a table or a row compares with; a row adds to its table's."""
        if node is None:
            return None
        bench = node.text("bench") if base is None else node.text("bench", default=base.bench)
        if self.benches is not None and bench not in self.benches:
            raise node.error("bench", f"there is no bench {bench!r}{did_you_mean(bench, self.benches)}")
        case = dict(base.case) if base else {}
        if part := node.section("case", default=None):
            for key in part.keys:
                self._require_parameter(part, key, bench, key)
                case[key] = tuple(part.scalar_or_scalars(key))
        samples = dict(base.samples) if base else {}
        if part := node.section("samples", default=None):
            samples |= {key: sample_value(part, key, bench) for key in part.keys}
        highest = node.text("highest", default=base.highest if base else "")
        if highest:
            self._require_parameter(node, "highest", bench, highest)
        return Comparison(bench, case, samples, highest)

    def _claim(self, node: Node, tables: Sequence[Published]) -> Claim:
        test = self._test(part, tables) if (part := node.section("test", default=None)) else None
        check = "" if test else node.text("check")
        remark = node.text("remark", default="")
        if check in _NEEDS_REMARK and not remark:
            raise node.error("check", _NEEDS_REMARK[check])
        kind = cast(Literal["claim", "recommendation"], node.choice("kind", CLAIM_KINDS, default="claim"))
        return Claim(node.text("id"), node.text("says"), check, remark, kind, test, node.where())

    def _test(self, node: Node, tables: Sequence[Published]) -> ClaimTest:
        """Read which figure decides a claim; the records are those of the table ``of``, or of a bench."""
        of = node.choice("of", [table.id for table in tables], default="")
        base = next((table.ours for table in tables if table.id == of), None)
        select = self._comparison(node, base)
        assert select is not None
        each, over = (node.texts(key, default=[]) for key in ("each", "over"))
        for key, names in (("each", each), ("over", over)):
            for name in names:
                self._require_parameter(node, key, select.bench, name)
        part = node.section("at", default=None)
        at = {key: tuple(part.scalar_or_scalars(key)) for key in part.keys} if part else {}
        (relation, *more) = [name for name in RELATIONS if name in node] or [""]
        if not relation or more or bool(at) != bool(over):
            raise node.error("", f"a test has one of {', '.join(RELATIONS)}; and 'over' goes with 'at'.")
        if select.samples:
            raise node.error("samples", "a test takes whole records, not samples of them.")
        least, most = -math.inf, node.number(relation)
        if relation in ("rises", "above"):
            least, most = most, node.number("at_most", default=math.inf)
        most = -most if relation == "falls" else most
        ends, chip = (node.boolean(key, default=False) for key in ("ends", "chip"))
        name = node.text("statistic")
        return ClaimTest(name, select, tuple(each), tuple(over), at, relation, least, most, ends, chip)

    def _require_parameter(self, node: Node, key: str, bench: str, parameter: str) -> None:
        known = self.benches[bench].parameters if self.benches is not None else None
        if known is not None and parameter not in known:
            said = f"the bench {bench!r} has no parameter {parameter!r}"
            raise node.error(key, f"{said}{did_you_mean(parameter, known)}")


def _refuse_twice(node: Node, key: str, ids: Sequence[str]) -> None:
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise node.error(key, f"{key} holds {', '.join(map(repr, twice))} twice.")
