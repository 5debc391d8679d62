// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { html } from "htm/preact";
import { renderToString } from "preact-render-to-string";

import { Legend, TrendChart, niceTop } from "./chart.js";
import { readTrend } from "./model.js";
import { random, sampleTrend } from "./sample.js";
import { fittedEnds } from "./scale.js";

const count = (text, part) => text.split(part).length - 1;
const words = (markup) => markup.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
const pathOf = (markup, name) => markup.match(new RegExp(`class="${name}"[^>]* d="([^"]*)"`))?.[1] ?? "";

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

function draw(trend, props = {}) {
  return renderToString(html`<${TrendChart} trend=${trend} chart=${trend.charts[0]} ...${props} />`);
}

/** The trend with an event at `position` of its only series. */
function withEvent(trend, event, position, change = 0.12) {
  trend.series[0].changes.push({ event: trend.events.length, position, change, low: null, high: null, of_ratio: false, before: null, after: null });
  trend.events.push({ cause: "firmware", effect: "worse", headline: "Firmware: something slower", ...event });
  return trend;
}

test("the axis starts at zero and ends above everything, in one unit", () => {
  const svg = draw(trendOf([7_000, 31_000]));
  assert.match(svg, />0<\/text>/);
  assert.match(svg, />40 ms<\/text>/);
  assert.deepEqual([0.9, 1, 24, 98].map(niceTop), [1, 1.5, 30, 150]);
});

test("a point over its limit is filled in red where the limit blocks, and hollow where it is advice or not provable", () => {
  const dotsOf = (trend) => ["broken", "beyond"].map((name) => count(pathOf(draw(trend), name), "h0"));
  assert.deepEqual(dotsOf(trendOf([7_000, 31_000])), [1, 0]);
  assert.deepEqual(dotsOf(trendOf([7_000, 24_000])), [0, 0]);
  assert.deepEqual(dotsOf(trendOf([31_000], { blocking: false })), [0, 1]);
  assert.deepEqual(dotsOf(trendOf([31_000], { outcome: "n" })), [0, 1]);
  assert.deepEqual(dotsOf(trendOf([7_000], { direction: "higher" })), [1, 0]);
});

test("a limit is a dashed line with a step where it was changed, and ends where it was withdrawn", () => {
  const stepped = pathOf(draw(trendOf([7_000, 7_000, 7_000, 7_000], { change: { limit: [[0, 20_000], [2, 12_000]] } })), "limit");
  assert.deepEqual(["M", "V", "H"].map((letter) => count(stepped, letter)), [1, 1, 2]);
  const ended = pathOf(draw(trendOf([7_000, 7_000, 7_000], { change: { limit: [[0, 12_000], [1, null]] } })), "limit");
  assert.deepEqual(["M", "V", "H"].map((letter) => count(ended, letter)), [1, 0, 1]);
});

test("a limit far above the values does not flatten them: it is named at the top instead", () => {
  const svg = draw(trendOf([1_000, 1_100], { limit: 250_000 }));
  assert.match(svg, /limit 250 ms ↑/);
  assert.match(svg, />1.5 ms<\/text>/);
  assert.equal(pathOf(svg, "limit"), "");
});

test("a run without the value leaves a gap", () => {
  assert.equal(count(pathOf(draw(trendOf([7_000, 7_500, null, 8_000, 8_000])), "line"), "M"), 2);
});

test("a year is drawn as a path, with dots only at the newest run and at runs that stand alone", () => {
  const values = Array.from({ length: 365 }, (_, night) => (night === 100 || night === 102 ? null : 7_000));
  assert.equal(count(pathOf(draw(trendOf(values)), "dots"), "h0"), 2);
  assert.equal(count(pathOf(draw(trendOf(Array(9).fill(7_000))), "dots"), "h0"), 9);
});

test("runs stand at their dates where they span more than two weeks, so that a pause shows; else side by side", () => {
  const places = (trend) => [...pathOf(draw(trend), "dots").matchAll(/M([\d.]+)/g)].map(([, x]) => Number(x));
  const paused = trendOf([7_000, 7_000, 7_000], { nights: 10, change: { run: [0, 1, 29] } });
  const [first, second, third] = places(paused);
  assert.ok((third - second) / (second - first) > 20, `${first} ${second} ${third}`);
  const [a, b, c] = places(trendOf([7_000, 7_000, 7_000], { nights: 4, change: { run: [0, 1, 9] } }));
  assert.ok(Math.abs(c - b - (b - a)) < 0.3);
});

test("at most five labels whatever the number of runs, all within the drawing", () => {
  for (const runs of [1, 2, 5, 6, 7, 14, 16, 40, 200, 365]) {
    const svg = draw(trendOf(Array(runs).fill(7_000)));
    const bottom = [...svg.matchAll(/<text class="(\w+)" x="([\d.]+)" y="171">/g)];
    assert.ok(bottom.length >= 1 && bottom.length <= 5, `${runs} runs: ${bottom.length} labels`);
    for (const [, , x] of bottom) assert.ok(Number(x) >= 0 && Number(x) <= 380);
  }
});

test("a change has the sign of its cause, points to where the figures went, and is red only where the firmware is worse", () => {
  const marks = (event, change, place) => draw(withEvent(trendOf([7_000, 8_000], place), event, 1, change));
  assert.match(marks({ cause: "firmware" }, 0.12), /class="change bad".*m0 -5l5 9h-10z/s);
  assert.match(marks({ cause: "firmware" }, -0.12), /class="change good".*m0 5l5 -9h-10z/s);
  assert.match(marks({ cause: "firmware" }, -0.12, { direction: "higher", limit: null }), /class="change bad"/);
  assert.match(marks({ cause: "board" }, 0.12), /class="change unsure".*l-5 -5\.5z/s);
  assert.match(marks({ cause: "environment" }, 0.12), /class="change unsure hollow".*a4\.5 4\.5/s);
  assert.match(marks({ cause: "unclear" }, 0.12), /class="change neutral".*>\?<\/text>/s);
  assert.match(marks({}, 0.12), /<title>Firmware: something slower\n2026-11-20/);
});

test("an event that moved several statistics has one sign", () => {
  const json = sampleTrend({ nights: 20, boards: 1, cases: 1, plant: [{ night: 9, change: 0.5 }] });
  const trend = readTrend(json);
  const chart = trend.charts.find(({ quantity }) => quantity === "publish latency");
  assert.ok(chart.lines.length > 1);
  assert.equal(count(draw(trend, { chart }), 'class="change-sign"'), 1);
});

test("a chart is grey where nothing changed and nothing is broken, and only there", () => {
  assert.match(draw(trendOf([7_000])), /class="trend-chart quiet"/);
  assert.match(draw(trendOf([31_000])), /class="trend-chart"/);
  assert.match(draw(withEvent(trendOf([7_000, 8_000]), {}, 1)), /class="trend-chart"/);
});

test("figures that are not of a chip say so in the chart's text, and nothing stands behind the data", () => {
  for (const [place, words] of [[{ kind: "virtual" }, " (virtual)"], [{ kind: "virtual", simulated: "noise" }, " (virtual, simulated noise)"], [{}, ""]]) {
    const svg = draw(trendOf([7_000], place));
    assert.ok(svg.includes(`<title>publish latency p95 on e1${words}: 7 ms now`), words);
    assert.doesNotMatch(svg, /<text[^>]*>virtual/);
  }
});

test("a fitted axis holds what was measured and little else: a step of 12 % is seen, a limit off it is named at its edge", () => {
  const trend = trendOf([7_000, 7_010, 7_840, 7_850]);
  const ends = fittedEnds([trend.series[0]]);
  assert.ok(ends[0] > 6_800 && ends[1] < 8_100, String(ends));
  const svg = draw(trend, { ends });
  const [before, after] = [...pathOf(svg, "dots").matchAll(/M[\d.]+ ([\d.]+)/g)].map(([, y]) => Number(y)).filter((_, n) => n % 3 === 0);
  assert.ok(before - after > 90, `${before} ${after}`);
  assert.match(svg, /limit 25 ms ↑/);
  const low = trendOf([7_000, 7_100], { limit: 400, direction: "higher" });
  assert.match(draw(low, { ends: fittedEnds([low.series[0]]) }), /limit 400 µs ↓/);
  assert.equal(fittedEnds([trendOf([null]).series[0]]), undefined);
});

test("the range in which an event lies is shaded: from the last run before to the first of the new level", () => {
  const svg = draw(withEvent(trendOf([7_000, 7_000, 8_000, 8_000]), {}, 2), { event: 0 });
  const places = [...pathOf(svg, "dots").matchAll(/M([\d.]+)/g)].map(([, x]) => Number(x));
  const [, x, width] = svg.match(/class="step-range" x="([\d.]+)"[^>]*? width="([\d.]+)"/).map(Number);
  assert.ok(Math.abs(x - places[1]) < 0.2 && Math.abs(x + width - places[2]) < 0.2);
});

test("the text alternative says what is now, what the limit is, and what changed when, where and why", () => {
  const svg = draw(withEvent(trendOf([7_000, 31_000], { kind: "virtual" }), {}, 1));
  assert.match(svg, /role="img"/);
  assert.match(svg, /<title>publish latency p95 on e1 \(virtual\): 31 ms now, limit 25 ms broken<\/title>/);
  assert.match(svg, /<desc>p95 up 12 % on 2026-11-20 since [0-9a-f]{7}, firmware\. 2 runs from 2026-11-19 to 2026-11-20\.<\/desc>/);
  assert.match(draw(trendOf([7_000], { now: null })), /not measured in this run/);
});

test("interval, reference firmware and levels are drawn where they are known", () => {
  const columns = { low: [6_900, null], high: [7_100, null], reference: [6_000, 6_100] };
  const trend = trendOf([7_000, 7_000], { change: columns, levels: [{ from: 0, to: 1, value: 7_000, low: 6_950, high: 7_050 }] });
  const svg = draw(trend);
  for (const name of ["band", "reference", "level", "level-band"]) assert.ok(pathOf(svg, name), name);
  for (const name of ["band", "reference", "level"]) assert.equal(pathOf(draw(trendOf([7_000])), name), "", name);
});

test("only the wanted statistics are drawn; all of them where the chart has none of these", () => {
  const trend = readTrend(sampleTrend({ nights: 5, boards: 1, cases: 1 }));
  const chart = trend.charts.find(({ lines }) => lines.length === 3);
  assert.equal(count(draw(trend, { chart, stats: ["p95"] }), 'class="line"'), 1);
  assert.equal(count(draw(trend, { chart, stats: ["max"] }), 'class="line"'), 3);
});

test("a name cannot become markup, nor a statistic a class", () => {
  const svg = draw(trendOf([7_000], { board: "<img src=x>", stat: '"><script>' })) + renderToString(
    html`<${Legend} chart=${trendOf([7_000], { stat: "<script>" }).charts[0]} />`);
  assert.doesNotMatch(svg, /<img|<script/);
});

test("there is no NaN, no undefined, no infinity and no style attribute in a chart of any data", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const next = random(seed);
    const pick = (choices) => choices[Math.floor(next() * choices.length)];
    const length = pick([0, 1, 2, 3, 15, 45]);
    const amount = () => pick([null, null, 0, 0, 1, next() * 1e4, 1e-300, 5e-324, 1e300, 1.7e308, -1, -60, NaN, undefined]);
    const calm = () => pick([null, 7_000, 7_000 * next()]);
    const one = pick([amount, calm, () => null, () => 0]);
    const column = () => Array.from({ length }, one);
    const trend = trendOf(column(), {
      nights: pick([1, 8]), limit: pick([null, 0, 25_000, 1e300]), direction: pick(["lower", "higher"]), unit: pick(["us", "ratio", "dbm", "bytes", "x"]),
      outcome: "rpnib-".repeat(8).slice(0, length),
      change: { low: column(), high: column(), reference: column() }, kind: pick(["virtual", "physical"]),
      levels: length ? [{ from: 0, to: length - 1, value: one(), low: one(), high: null }] : [],
    });
    if (length) withEvent(trend, {}, length - 1, pick([0.1, -0.1, 0, null]));
    const svg = draw(trend, { width: pick([240, 380, 900]), log: pick([true, false]) }) + renderToString(html`<${Legend} chart=${trend.charts[0]} />`);
    assert.equal(/.{0,90}(?:NaN|undefined|Infinity|style=|null).{0,40}/.exec(svg)?.[0], undefined, `seed ${seed}`);
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
  const css = readFileSync(new URL("charts.css", import.meta.url), "utf8");
  const pairs = [...css.matchAll(/--chart-([\w-]+): light-dark\((#\w+), (#\w+)\)/g)];
  assert.equal(pairs.length, 11);
  for (const [place, card] of [[2, "#ffffff"], [3, "#1b2229"]]) {
    assert.equal(new Set(pairs.map((pair) => pair[place])).size, pairs.length);
    for (const pair of pairs) assert.ok(contrast(pair[place], card) >= 3, `${pair[1]}: ${contrast(pair[place], card)}`);
  }
  for (const stat of ["p50", "p90", "p95", "p99", "p99_9", "tail5", "mean", "max", "one"]) assert.match(css, new RegExp(`\\.stat-${stat} \\{ --s: var\\(--chart-${stat}\\)`));
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
