// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { closeness, effectOf, readTrend } from "../trend/model.js";
import { pointNow, stands } from "../trend/points.js";
import { sampleTrend } from "./sample.js";

/** A trend of one series a change: what is given differs from a blocking latency of 7 ms under 25 ms. */
function trendOf(...changes) {
  const series = changes.map(({ value = 7_000, limit = 25_000, outcome = "p", ...other }, index) => ({
    id: `s${index}`, rack: "lab", board: "e1", kind: "physical", simulated: "", target: "esp32", bench: "publish",
    case_id: "publish/qos=1", label: "qos=1", metric: "publish_latency_p95_us", quantity: "publish latency", stat: "p95",
    unit: "us", direction: "lower", blocking: true, profile: "", now: 0, levels: [], changes: [], test: "",
    points: { run: [0], value: [value], outcome, limit: limit === null ? [] : [[0, limit]] }, ...other,
  }));
  return readTrend({ ...sampleTrend({ nights: 1, boards: 0 }), series });
}

test("statistics of one quantity share a chart, in the order of a legend", () => {
  const { charts } = trendOf({ stat: "max" }, { stat: "p99.9" }, { stat: "" }, { stat: "p50" });
  assert.deepEqual(charts.map(({ lines }) => lines.map(({ stat }) => stat)), [["p50", "p99.9", "max", ""]]);
});

test("products never share a chart, and their keys begin as their series' names", () => {
  const trend = trendOf({}, { product: "sensor-node" }, { product: "gateway" });
  assert.deepEqual([...trend.keys.keys()].sort(), [
    "gateway:lab/e1/publish/qos=1/publish latency", "lab/e1/publish/qos=1/publish latency",
    "sensor-node:lab/e1/publish/qos=1/publish latency",
  ]);
  assert.deepEqual(trend.charts.map(({ product }) => product).sort(), ["", "gateway", "sensor-node"]);
});

test("kinds, racks, boards, air profiles and units never share a chart", () => {
  const apart = [{ kind: "virtual" }, { rack: "attic" }, { board: "e2" }, { profile: "hotspot" }, { unit: "ms" }];
  for (const other of apart) assert.equal(trendOf({}, other).charts.length, 2, JSON.stringify(other));
});

test("a key names one chart, and the plain one what was measured now", () => {
  const trend = trendOf({ now: null, kind: "virtual" }, {}, { kind: "emulated" }, { kind: "emulated", unit: "ms" });
  assert.equal(trend.keys.size, 4);
  assert.equal(trend.keys.get("lab/e1/publish/qos=1/publish latency").kind, "physical");
});

test("each series knows its chart", () => {
  const trend = readTrend(sampleTrend({ nights: 3, boards: 2, cases: 2 }));
  for (const series of trend.series) assert.ok(trend.chartOf.get(series).lines.some((line) => line.series === series));
});

test("broken limits come first, then what got worse, then better, then what is nearest to its limit", () => {
  const change = (change) => ({ changes: [{ event: 0, position: 0, change }] });
  const trend = trendOf({ board: "far" }, { board: "near", value: 24_000 }, { board: "better", ...change(-0.1) },
    { board: "worse", ...change(0.1) }, { board: "broken", value: 26_000, outcome: "r" });
  assert.deepEqual(trend.charts.map(({ board }) => board), ["broken", "worse", "better", "near", "far"]);
});

test("more of what should be high is better, more of what should be low is worse", () => {
  const effects = [[0.1, "lower"], [-0.1, "lower"], [0.1, "higher"], [-0.1, "higher"]].map(([change, direction]) => effectOf(change, direction));
  assert.deepEqual(effects, ["worse", "better", "better", "worse"]);
});

test("only what the reported run measured counts: a limit broken and mended is no broken limit", () => {
  const points = { run: [0, 1], value: [90_000, 7_000], outcome: "rp", limit: [[0, 25_000]] };
  const broken = (now) => trendOf({ points, now }).charts[0].rank.broken;
  assert.deepEqual([broken(0), broken(1), broken(null)], [true, false, false]);
});

test("advice, and what cannot be proved, lies beyond a limit and breaks none", () => {
  const how = (change) => stands(trendOf({ value: 30_000, outcome: "r", ...change }).series[0]);
  assert.deepEqual([how({}), how({ blocking: false }), how({ outcome: "p" }), how({ limit: null }), how({ value: null })],
    ["broken", "beyond", "beyond", "", ""]);
});

test("how near a limit is, is said alike for both directions, and of zero limits too", () => {
  const near = (change) => closeness(trendOf(change).series[0]);
  assert.equal(near({ value: 50_000, direction: "higher" }), 0.5);
  assert.equal(near({ value: 12_500 }), 0.5);
  assert.deepEqual([near({ value: 1, limit: 0 }), near({ value: 0, limit: 0 }), near({ limit: null })], [Infinity, 0, -1]);
});

test("a limit is the newest step at or before a point, and may end", () => {
  const points = { run: [0, 1, 2, 3], value: [1, 1, 1, null], outcome: "pppp", limit: [[1, 30], [3, null]] };
  const { series: [series] } = trendOf({ points });
  assert.deepEqual([0, 1, 2, 3].map((now) => pointNow({ ...series, now }).limit), [null, 30, 30, null]);
});

test("details are read once, and not before somebody asks", () => {
  let asked = 0;
  const trend = readTrend(sampleTrend({ nights: 1, boards: 1 }), () => { asked += 1; return { key: 1 }; });
  assert.equal(asked, 0);
  assert.deepEqual([trend.details, trend.details], [{ key: 1 }, { key: 1 }]);
  assert.equal(asked, 1);
});
