// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { readTrend } from "../trend/model.js";
import { sampleTrend } from "./sample.js";
import { addressOfTest, choicesOf, groupCharts, selectCharts } from "../trend/select.js";
import { EMPTY, readState } from "../trend/state.js";

const TREND = readTrend(sampleTrend({
  nights: 20, boards: 4, cases: 5, racks: 2,
  plant: [{ night: 8, change: 0.2, metrics: /latency/, cases: /tls/ }, { night: 15, change: 1.2, metrics: /latency_p95/, boards: ["e4"] }],
}));
const select = (change) => selectCharts(TREND, { ...EMPTY, ...change });

test("without a filter every chart is there", () => {
  assert.equal(select({}).length, TREND.charts.length);
});

test("each choice keeps what is so of the chart", () => {
  for (const [name, value] of [["board", "e1"], ["rack", "attic"], ["target", "esp32c3"], ["bench", "echo"], ["kind", "physical"]]) {
    const found = select({ [name]: value });
    assert.deepEqual(found, TREND.charts.filter((chart) => chart[name] === value));
    assert.ok(found.length);
  }
});

test("products have groups of their own, and can be chosen", () => {
  const file = sampleTrend({ nights: 1, boards: 1, cases: 1 });
  const both = ["sensor-node", "gateway"].flatMap((product) => file.series.map((series) => ({ ...series, product })));
  const trend = readTrend({ ...file, series: both });
  assert.deepEqual(choicesOf(trend).product, ["gateway", "sensor-node"]);
  const found = selectCharts(trend, { ...EMPTY, product: "gateway" });
  assert.equal(found.length, trend.charts.length / 2);
  assert.deepEqual(new Set(groupCharts(trend.charts).map(({ product }) => product)), new Set(["gateway", "sensor-node"]));
  assert.deepEqual(groupCharts(found).map(({ key }) => key), groupCharts(found).map(({ bench }) => `${bench}/gateway/lab/e1/physical`));
});

test("every word must be found, in whatever case and order", () => {
  const found = select({ text: "LATENCY transport=TLS" });
  assert.deepEqual(new Set(found.map(({ quantity, label }) => `${quantity} ${label}`)), new Set(["publish latency transport=tls"]));
  assert.equal(select({ text: "latency nowhere" }).length, 0);
});

test("a statistic keeps charts that have it", () => {
  assert.deepEqual(new Set(select({ stat: ["mean"] }).map(({ quantity }) => quantity)), new Set(["heap free"]));
});

test("an event keeps the charts of its series", () => {
  const found = select({ event: 0 });
  assert.equal(found.length, 4);
  assert.ok(found.every(({ label }) => label === "transport=tls"));
});

test("changed and broken keep what is so", () => {
  assert.deepEqual(select({ changed: true }), TREND.charts.filter(({ rank }) => rank.changed));
  const broken = select({ broken: true });
  assert.ok(broken.length);
  assert.ok(broken.every(({ rank, board }) => rank.broken && board === "e4"));
});

test("changed within a range of dates is what changed then", () => {
  const late = select({ changed: true, from: "2026-11-14" });
  assert.ok(late.length);
  assert.ok(late.every(({ board }) => board === "e4"));
  assert.equal(select({ changed: true, to: "2026-11-03" }).length, 0);
});

test("a range without runs has no chart", () => {
  assert.equal(select({ from: "2027-01-01" }).length, 0);
  assert.equal(select({ from: "2026-11-10", to: "2026-11-09" }).length, 0);
});

test("a group is a bench on a board of a rack, the worst first, and each chart is in one", () => {
  const groups = groupCharts(select({}));
  assert.equal(groups.reduce((sum, { charts }) => sum + charts.length, 0), TREND.charts.length);
  assert.deepEqual([groups[0].board, groups[0].rank.broken], ["e4", true]);
  for (const { bench, rack, board, cases } of groups) {
    assert.ok(cases.every((charts) => charts.every((chart) => chart.bench === bench && chart.rack === rack && chart.board === board)));
  }
});

test("what the reported run did not measure stands in groups of its own, at the end", () => {
  const series = TREND.series.map((item) => (item.board === "e4" ? { ...item, now: null } : item));
  const groups = groupCharts(readTrend({ ...TREND, series }).charts);
  const past = groups.filter(({ measuredNow }) => !measuredNow);
  assert.deepEqual(groups.slice(-past.length), past);
  assert.deepEqual(new Set(past.map(({ board }) => board)), new Set(["e4"]));
});

test("choices are sorted as people count: e2 before e10", () => {
  assert.deepEqual(choicesOf(readTrend(sampleTrend({ nights: 1, boards: 10, cases: 1 }))).board.slice(0, 3), ["e1", "e2", "e3"]);
});

test("a test's id leads to the chart of its case, and any other hash to nothing", () => {
  const series = TREND.series.find(({ board, stat }) => board === "e2" && stat === "p95");
  const id = "0123456789abcdef0123456789abcdef";
  const trend = { ...TREND, series: TREND.series.map((one) => (one === series ? Object.assign(one, { test: id }) : one)) };
  assert.equal(readState(addressOfTest(trend, `#test=${id}`)).chart, TREND.chartOf.get(series).key);
  for (const hash of ["", "#event=0", `#test=${"f".repeat(32)}`, "#test=<script>", `#test=${id}&x=1`]) {
    assert.equal(addressOfTest(trend, hash), "");
  }
});
