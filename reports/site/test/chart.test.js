// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { html } from "htm/preact";
import { renderToString } from "preact-render-to-string";

import { Legend, TrendChart } from "../trend/chart.js";
import { columnsOf, drawingOf, endsOf, fittedEnds } from "../trend/drawing.js";
import { readTrend } from "../trend/model.js";
import { isWithin } from "../trend/select.js";
import { changesOf } from "../trend/words.js";
import { random, sampleTrend } from "./sample.js";

const words = (markup) => markup.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();

/** A trend of one series: publish_latency_p95_us with these values, one a night. */
function trendOf(values, { limit = 25_000, outcome, change = {}, nights = 1, ...place } = {}) {
  const trend = sampleTrend({ nights: Math.max(1, values.length * nights), boards: 1, cases: 1, details: false });
  const series = trend.series.find(({ metric }) => metric === "publish_latency_p95_us");
  const over = (value) => value !== null && limit !== null && (place.direction === "higher" ? value < limit : value > limit);
  const points = {
    run: values.map((_, index) => index * nights), value: values, limit: limit === null ? [] : [[0, limit]],
    outcome: outcome ?? values.map((value) => (over(value) ? "r" : "p")).join(""), ...change,
  };
  Object.assign(series, { points, levels: [], changes: [], now: values.length ? values.length - 1 : null }, place);
  return readTrend({ ...trend, series: [series], events: [] });
}

const draw = (trend) => renderToString(html`<${TrendChart} trend=${trend} chart=${trend.charts[0]} />`);
const drawing = (trend, ...more) => drawingOf(trend, trend.charts[0], ...more);

/** The trend with an event at `position` of its only series. */
function withEvent(trend, event, position, change = 0.12) {
  trend.series[0].changes.push({ event: trend.events.length, position, change, low: null, high: null, of_ratio: false, before: null, after: null });
  trend.events.push({ cause: "firmware", effect: "worse", headline: "Firmware: something slower", ...event });
  return trend;
}

test("the axis starts at zero and ends above everything, in one unit", () => {
  const made = drawing(trendOf([7_000, 31_000]));
  assert.equal(made.unit.symbol, "ms");
  const [low, high] = endsOf(made);
  assert.equal(low, 0);
  assert.ok(high > 31 && high < 40, `${high}`);
  assert.deepEqual(columnsOf(made)[1], [7, 31]);
});

test("a limit far above the values does not flatten them", () => {
  assert.ok(endsOf(drawing(trendOf([1_000, 1_100], { limit: 250_000 })))[1] < 2);
  assert.ok(endsOf(drawing(trendOf([1_000, 1_100], { limit: 2_500 })))[1] > 2.5);
});

test("a run without the value is a gap, and a run of other lines is none", () => {
  const gap = drawing(trendOf([7_000, null, 8_000]));
  assert.deepEqual(columnsOf(gap)[1], [7, null, 8]);
  const trend = readTrend(sampleTrend({ nights: 3, boards: 1, cases: 1 }));
  const chart = trend.charts.find(({ lines }) => lines.length === 3);
  for (const column of ["run", "value", "low", "high", "reference"]) chart.lines[0].series.points[column].splice(1, 1);
  assert.equal(columnsOf(drawingOf(trend, chart))[1][1], undefined);
});

test("runs stand at their dates where they span more than two weeks, so that a pause shows; else side by side", () => {
  const places = (trend) => columnsOf(drawing(trend))[0];
  const [first, second, third] = places(trendOf([7_000, 7_000, 7_000], { nights: 10, change: { run: [0, 1, 29] } }));
  assert.equal(Math.round((third - second) / (second - first)), 28);
  assert.deepEqual(places(trendOf([7_000, 7_000, 7_000], { nights: 4, change: { run: [0, 1, 9] } })), [0, 1, 2]);
});

test("only runs from the first day to the last are drawn, with the changes among them", () => {
  const trend = withEvent(trendOf(Array(20).fill(7_000)), {}, 8);
  const within = (from, to) => drawing(trend, [], isWithin(trend, { from, to }));
  const days = (range) => range.runs.map((run) => trend.runs.started_utc[run].slice(0, 10));
  assert.deepEqual(days(within("2026-11-08", "2026-11-09")), ["2026-11-08", "2026-11-09"]);
  assert.equal(days(within("", "2026-11-04")).length, 4);
  assert.deepEqual([within("2026-11-08", "").changes.length, within("2026-11-10", "").changes.length], [1, 0]);
  assert.deepEqual(within("2027-01-01", "").runs, []);
});

test("an event that moved several statistics has one sign", () => {
  const trend = readTrend(sampleTrend({ nights: 20, boards: 1, cases: 1, plant: [{ night: 9, change: 0.5 }] }));
  const chart = trend.charts.find(({ quantity }) => quantity === "publish latency");
  assert.ok(chart.lines.length > 1);
  assert.equal(changesOf(chart.lines).length, 1);
});

test("a chart is grey where nothing changed and nothing is broken, and only there", () => {
  assert.equal(drawing(trendOf([7_000])).quiet, true);
  assert.equal(drawing(trendOf([31_000])).quiet, false);
  assert.equal(drawing(withEvent(trendOf([7_000, 8_000]), {}, 1)).quiet, false);
});

test("a fitted axis holds what was measured and little else", () => {
  const ends = fittedEnds([trendOf([7_000, 7_010, 7_840, 7_850]).series[0]]);
  assert.ok(ends[0] > 6_800 && ends[1] < 8_100, String(ends));
  assert.equal(fittedEnds([trendOf([null]).series[0]]), undefined);
});

test("the text alternative says what is now, what the limit is, and what changed when, where and why", () => {
  const markup = draw(withEvent(trendOf([7_000, 31_000], { kind: "virtual", simulated: "noise" }), {}, 1));
  assert.match(markup, /role="img" aria-label="publish latency p95 on e1 \(virtual, simulated noise\): 31 ms now, limit 25 ms, broken\. p95 \+12 % on 2026-11-20 since [0-9a-f]{7}, firmware\. 2 runs\."/);
  assert.match(draw(trendOf([7_000])), /on e1: 7 ms now, limit 25 ms\. No change found\. 1 run\./);
  assert.match(draw(trendOf([7_000], { now: null })), /not measured in this run/);
});

test("only the wanted statistics are drawn; all of them where the chart has none of these", () => {
  const trend = readTrend(sampleTrend({ nights: 5, boards: 1, cases: 1 }));
  const chart = trend.charts.find(({ lines }) => lines.length === 3);
  assert.equal(drawingOf(trend, chart, ["p95"]).lines.length, 1);
  assert.equal(drawingOf(trend, chart, ["max"]).lines.length, 3);
});

test("a name cannot become markup, nor a statistic a class", () => {
  const markup = draw(trendOf([7_000], { board: "<img src=x>", stat: '"><script>' })) + renderToString(
    html`<${Legend} chart=${trendOf([7_000], { stat: "<script>" }).charts[0]} />`);
  assert.doesNotMatch(markup, /<img|<script/);
});

test("whatever the data, only finite numbers are drawn between finite ends", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const next = random(seed);
    const pick = (choices) => choices[Math.floor(next() * choices.length)];
    const length = pick([0, 1, 2, 3, 15, 45]);
    const amount = () => pick([null, null, 0, 0, 1, next() * 1e4, 1e-300, 5e-324, 1e299, 1.7e308, -1, -60, NaN, undefined]);
    const one = pick([amount, () => pick([null, 7_000 * next()]), () => null, () => 0]);
    const column = () => Array.from({ length }, one);
    const trend = trendOf(column(), {
      nights: pick([1, 8]), limit: pick([null, 0, 25_000, 1e300]), direction: pick(["lower", "higher"]), unit: pick(["us", "ratio", "dbm", "bytes", "x"]),
      outcome: "rpnib-".repeat(8).slice(0, length), change: { low: column(), high: column(), reference: column() },
    });
    if (length) withEvent(trend, {}, length - 1, pick([0.1, -0.1, 0, null]));
    const made = drawing(trend);
    for (const value of [...columnsOf(made).flat(), ...endsOf(made)]) assert.ok(value === null || value === undefined || Number.isFinite(value), `seed ${seed}: ${value}`);
    assert.ok(endsOf(made)[0] < endsOf(made)[1], `seed ${seed}`);
    const markup = draw(trend) + renderToString(html`<${Legend} chart=${trend.charts[0]} />`);
    assert.equal(/.{0,90}(?:NaN|undefined|Infinity|style=|null).{0,40}/.exec(markup)?.[0], undefined, `seed ${seed}`);
  }
});

test("the legend says newest value and limit of each statistic, and a figure among timeouts reads at least", () => {
  const legend = (trend) => words(renderToString(html`<${Legend} chart=${trend.charts[0]} />`));
  assert.equal(legend(trendOf([7_000, 31_000])), "p95 31 ms limit 25 ms");
  assert.equal(legend(trendOf([1_500_000])), "p95 1.5 s limit 25 ms");
  assert.equal(legend(trendOf([31_000, null])), "p95 –");
  assert.equal(legend(trendOf([90_000], { change: { at_least: [0] } })), "p95 ≥ 90 ms limit 25 ms");
});

test("what the reported run did not measure is told as it was last, without a word on how it stands", () => {
  const trend = trendOf([31_000, null]);
  const markup = renderToString(html`<${Legend} chart=${{ ...trend.charts[0], measuredNow: false }} />`);
  assert.match(markup, /<span class="of">31 ms<\/span>/);
  assert.doesNotMatch(markup, /broken|<b>/);
});

test("each statistic has a colour of its own, with a contrast of 3:1 to the card, light and dark", () => {
  const css = readFileSync(new URL("../trend/charts.css", import.meta.url), "utf8");
  const pairs = [...css.matchAll(/--chart-([\w-]+): light-dark\((#\w+), (#\w+)\)/g)];
  assert.equal(pairs.length, 11);
  for (const [place, card] of [[2, "#ffffff"], [3, "#1b2229"]]) {
    assert.equal(new Set(pairs.map((pair) => pair[place])).size, pairs.length);
    for (const pair of pairs) assert.ok(contrast(pair[place], card) >= 3, `${pair[1]}: ${contrast(pair[place], card)}`);
  }
  for (const stat of ["p50", "p90", "p95", "p99", "p99_9", "tail5", "mean", "max", "one"]) assert.match(css, new RegExp(`\\.chart-${stat} \\{ --s: var\\(--chart-${stat}\\)`));
});

/** As WCAG 2 has it. */
function contrast(one, other) {
  const light = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}
