// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { pointAt, readTrend } from "./model.js";
import { within } from "./range.js";
import { sampleTrend } from "./sample.js";

const TREND = readTrend(sampleTrend({ nights: 20, boards: 1, cases: 1, plant: [{ night: 8, change: 0.2 }] }));
const CHART = TREND.charts.find(({ quantity }) => quantity === "publish latency");
const cut = (from, to) => within(TREND.runs, CHART, { from, to });
const days = ({ points }) => points.run.map((run) => TREND.runs.started_utc[run].slice(0, 10));

test("only runs from the first day to the last are left, both included", () => {
  for (const { series } of cut("2026-11-05", "2026-11-08").lines) {
    assert.deepEqual(days(series), ["2026-11-05", "2026-11-06", "2026-11-07", "2026-11-08"]);
    for (const column of ["value", "low", "high", "reference", "boots", "outcome"]) assert.equal(series.points[column].length, 4);
  }
});

test("an open end has none, and without a range it is the chart itself", () => {
  assert.equal(days(cut("", "2026-11-04").lines[0].series).length, 4);
  assert.equal(days(cut("2026-11-19", "").lines[0].series).length, 2);
  assert.equal(cut("", ""), CHART);
});

test("a change within the range stays at its run; one outside is gone, and the chart is grey", () => {
  const inside = cut("2026-11-05", "2026-11-15");
  assert.deepEqual(inside.lines[0].series.changes.map(({ position }) => days(inside.lines[0].series)[position]), ["2026-11-09"]);
  assert.deepEqual([inside.rank.changed, cut("2026-11-10", "").rank.changed], ["worse", ""]);
});

test("levels and limits reach as far as the range does", () => {
  const { series } = cut("2026-11-05", "2026-11-12").lines.find(({ stat }) => stat === "p95");
  assert.deepEqual(series.levels.map(({ from, to }) => [from, to]), [[0, 3], [4, 7]]);
  assert.equal(pointAt(series, 0).limit, 25_000);
});

test("now is the reported run's, also where it lies outside of the range", () => {
  assert.equal(cut("", "2026-11-12").lines[0].series.now, null);
  assert.equal(cut("2026-11-12", "").lines[0].series.now, 8);
  assert.equal(cut("", "2026-11-12").rank.broken, CHART.rank.broken);
});

test("nothing is left of a chart that was not measured then", () => {
  assert.deepEqual(cut("2027-01-01", "").lines, []);
});
