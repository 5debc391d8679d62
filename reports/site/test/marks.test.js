// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { before, test } from "node:test";

import { drawingOf } from "../trend/drawing.js";
import { marksOf } from "../trend/marks.js";
import { readTrend } from "../trend/model.js";
import { sampleTrend } from "./sample.js";

/** What was drawn: [how, colour, steps of the path], and the texts. */
let drawn = [];
let texts = [];

before(() => {
  const record = (name) => function (...numbers) { this.steps.push([name, ...numbers]); };
  globalThis.Path2D = class { steps = []; moveTo = record("M"); lineTo = record("L"); rect = record("rect"); arc = record("arc"); };
  globalThis.document = { body: { appendChild: (element) => element }, createElement: () => ({ style: {}, remove() {} }) };
  globalThis.getComputedStyle = ({ style }) => ({ color: style.color });
});

/** The marks of one latency p95, a run a pixel and a millisecond a pixel upwards, in a plot of 100 × 100 pixels. */
function marks(values, { limit = [[0, 25_000]], outcome = values.map(() => "r").join(""), event, changes = [], ...place } = {}) {
  const json = sampleTrend({ nights: values.length, boards: 1, cases: 1, details: false });
  const series = json.series.find(({ metric }) => metric === "publish_latency_p95_us");
  Object.assign(series, { points: { run: values.map((_, run) => run), value: values, outcome, limit }, levels: [], changes }, place);
  const trend = readTrend({ ...json, series: [series], events: [] });
  [drawn, texts] = [[], []];
  const take = (how) => function (path) { drawn.push([how, this.strokeStyle, path.steps]); };
  const ctx = { save() {}, restore() {}, beginPath() {}, rect() {}, clip() {}, setLineDash() {}, strokeText() {}, fill: take("fill"), stroke: take("stroke"),
    fillText: (text) => texts.push(text) };
  const u = { ctx, bbox: { left: 0, top: 0, width: 100, height: 100 }, scales: { y: { min: 0, max: 40 } },
    valToPos: (value, scale) => (scale === "x" ? value : 100 - value), over: { querySelectorAll: () => [], clientWidth: 100, appendChild: (mark) => mark } };
  const { drawClear, draw } = marksOf(trend, drawingOf(trend, trend.charts[0]), { event, ink: () => "chart-p95" });
  drawClear.forEach((hook) => hook(u));
  draw.slice(0, 1).forEach((hook) => hook(u)); // the signs of changes are elements of the page: its own test sees them
}

const red = (how) => drawn.filter(([each, name]) => each === how && name === "var(--bad)").map(([, , steps]) => steps);

test("a limit is a level to both ends with a step where it was changed, and ends where it was withdrawn", () => {
  marks([7_000, 7_000, 7_000], { limit: [[0, 20_000], [2, 12_000]] });
  assert.deepEqual(red("stroke")[0].filter(([, , y], index, all) => y !== all[index - 1]?.[2]), [["M", 0, 80], ["L", 1.5, 88]]);
  assert.deepEqual(red("stroke")[0].at(-1), ["L", 100, 88]);
  marks([7_000, 7_000, 7_000], { limit: [[0, 12_000], [1, null]] });
  assert.deepEqual(red("stroke")[0], [["M", 0, 88], ["L", 0.5, 88]]);
});

test("a limit beyond the axis is named at its edge", () => {
  for (const [limit, text] of [[250_000, "limit 250 ms ↑"], [25_000, "limit 25 ms"]]) {
    marks([7_000], { limit: [[0, limit]] });
    assert.deepEqual(texts, [text]);
  }
});

test("a point over its limit is filled where the limit blocks, hollow where it is advice or not provable, and none within", () => {
  const dots = (values, change) => {
    marks(values, change);
    return ["fill", "stroke"].map((how) => red(how).filter(([[step] = []]) => step === "arc").length);
  };
  assert.deepEqual(dots([7_000, 31_000]), [1, 0]);
  assert.deepEqual(dots([7_000, 24_000]), [0, 0]);
  assert.deepEqual(dots([31_000], { blocking: false }), [0, 1]);
  assert.deepEqual(dots([31_000], { outcome: "n" }), [0, 1]);
  assert.deepEqual(dots([7_000], { direction: "higher" }), [1, 0]);
});

test("the range in which an event lies is shaded: from the last run before to the first of the new level", () => {
  marks([7_000, 7_000, 9_000, 9_000], { event: 0, changes: [{ event: 0, position: 2, change: 0.3 }] });
  assert.deepEqual(drawn[0].slice(1), ["var(--unsure)", [["rect", 1, 0, 2, 100]]]);
});
