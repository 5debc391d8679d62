import assert from "node:assert/strict";
import { test } from "node:test";

import { buildModel, excess, splitName } from "./model.js";
import { runsOf } from "./sample.js";

test("a metric's name is its quantity, statistic and unit", () => {
  assert.deepEqual(splitName("publish_latency_p95_us"), { quantity: "publish latency", stat: "p95", unit: "us" });
  assert.deepEqual(splitName("publish_failed_ratio"), { quantity: "publish failed", stat: "", unit: "ratio" });
  assert.deepEqual(splitName("wake_p99_9_us"), { quantity: "wake", stat: "p99.9", unit: "us" });
});

test("statistics of one quantity share a chart", () => {
  const [chart] = buildModel(runsOf([7_000, 8_000])).groups[0].cases[0].charts;
  assert.deepEqual(chart.lines.map(({ stat }) => stat), ["p50", "p95"]);
  assert.deepEqual(chart.lines[1].points.map(({ metric }) => metric.value), [7_000, 8_000]);
});

test("virtual and physical boards of one name never share a group", () => {
  const runs = [...runsOf([7_000]), ...runsOf([7_000], { kind: "virtual" })];
  const { groups } = buildModel(runs);
  assert.deepEqual(groups.map(({ kind }) => kind).sort(), ["physical", "virtual"]);
  assert.ok(groups.every(({ cases }) => cases[0].charts[0].lines[0].points.length === 1));
});

test("broken limits come first, then what is nearest to its limit", () => {
  const places = { far: [5_000], broken: [26_000], near: [24_900], advice: [90_000] };
  const runs = Object.entries(places).flatMap(([board, values]) => runsOf(values, { board, blocking: board !== "advice" }));
  assert.deepEqual(buildModel(runs).groups.map(({ board }) => board), ["broken", "advice", "near", "far"]);
});

test("only where it stands now counts: a limit broken and mended is no broken limit", () => {
  assert.equal(buildModel(runsOf([90_000, 7_000])).groups[0].rank.broken, false);
  assert.equal(buildModel(runsOf([7_000, 90_000])).groups[0].rank.broken, true);
});

test("where higher is better, a smaller value is nearer to the limit", () => {
  const { rank } = buildModel(runsOf([50_000], { direction: "higher" })).groups[0];
  assert.deepEqual(rank, { broken: false, closeness: 0.5 });
  assert.equal(excess({ value: 10, limit: 20, direction: "higher", outcome: "regressed", blocking: true }), "broken");
});

test("beyond a limit of zero is as near as can be, and nothing of it is not near at all", () => {
  const closeness = (value) => buildModel(runsOf([value], { limit: 0 })).groups[0].rank.closeness;
  assert.deepEqual([closeness(1), closeness(0)], [Infinity, 0]);
});

test("advice and what cannot be proved are beyond a limit, not broken", () => {
  const beyond = { value: 30, limit: 25, outcome: "regressed", blocking: false };
  assert.equal(excess(beyond), "beyond");
  assert.equal(excess({ ...beyond, blocking: true, outcome: "pass" }), "beyond");
  assert.equal(excess({ ...beyond, value: 25 }), "");
  assert.equal(excess({ ...beyond, value: null }), "");
});

test("a run that measured nothing is no run of the trend", () => {
  const [first, second] = runsOf([7_000, 8_000]);
  assert.equal(buildModel([first, { ...second, cases: [] }]).runs.length, 1);
});

test("how a series stands is said of the reported run alone; others are past", () => {
  const runs = [...runsOf([90_000], { board: "gone" }), ...runsOf([7_000], { first: 1 })];
  const { groups, past } = buildModel(runs);
  assert.deepEqual(groups.map(({ board }) => board), ["b1"]);
  assert.deepEqual(past.map(({ board, rank, cases }) => [board, rank.broken, cases[0].last.run_id]), [["gone", false, "run-0"]]);
});

test("a case that the reported run did not measure is past, though its board is not", () => {
  const runs = [...runsOf([90_000], { case_id: "publish/qos=2", label: "qos=2" }), ...runsOf([7_000], { first: 1 })];
  const { groups, past } = buildModel(runs);
  assert.deepEqual([groups, past].map(([group]) => group.cases.map(({ label }) => label)), [["qos=1"], ["qos=2"]]);
  assert.equal(groups[0].rank.broken, false);
});

test("a metric that the reported run did not give has no rank", () => {
  const { groups } = buildModel(runsOf([90_000, null]));
  assert.deepEqual(groups[0].rank, { broken: false, closeness: -1 });
});

test("of several reported runs each counts, whichever is newer", () => {
  const runs = [...runsOf([90_000], { board: "b2" }), ...runsOf([7_000], { first: 1 })];
  assert.deepEqual(buildModel(runs, { reported: ["run-0", "run-1"] }).groups.map(({ board }) => board), ["b2", "b1"]);
});

test("a run that measured nothing leaves everything past", () => {
  const [first, second] = runsOf([90_000, 8_000]);
  const { groups, past } = buildModel([first, { ...second, cases: [] }]);
  assert.deepEqual([groups.length, past.length], [0, 1]);
});

test("air profiles never share a series", () => {
  const runs = [
    ...runsOf([7_000], { profile: "lab" }), ...runsOf([90_000], { profile: "hotspot", first: 1 }), ...runsOf([7_500], { profile: "lab", first: 2 }),
  ];
  const { groups, past } = buildModel(runs);
  const values = ([group]) => group.cases[0].charts[0].lines[1].points.map(({ metric }) => metric.value);
  assert.deepEqual([groups, past].map(values), [[7_000, 7_500], [90_000]]);
});

test("only the newest runs are drawn, and those reported", () => {
  const runs = runsOf([1, 2, 3, 4, 5].map((n) => n * 1_000));
  const { runs: drawn, dropped } = buildModel(runs, { reported: ["run-1", "run-4"], most: 2 });
  assert.deepEqual(drawn.map(({ run_id: id }) => id), ["run-1", "run-3", "run-4"]);
  assert.equal(dropped, 2);
});
