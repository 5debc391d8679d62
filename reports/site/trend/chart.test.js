import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { niceTop, renderChart, renderLegend } from "./chart.js";
import { buildModel } from "./model.js";
import { runsOf } from "./sample.js";

const chartOf = (...wanted) => buildModel(runsOf(...wanted)).groups[0].cases[0].charts[0];
const draw = (...wanted) => renderChart(chartOf(...wanted), "title");
const count = (text, part) => text.split(part).length - 1;

test("the axis starts at zero and ends above everything, in one unit", () => {
  const svg = draw([7_000, 31_000]);
  assert.match(svg, />0<\/text>/);
  assert.match(svg, />40 ms<\/text>/);
  assert.deepEqual([0.9, 1, 24, 98].map(niceTop), [1, 1.5, 30, 150]);
});

test("a point over its limit is marked, and its column says so", () => {
  const svg = draw([7_000, 31_000]);
  assert.equal(count(svg, 'class="broken"'), 1);
  assert.match(svg, /p95 31 ms, beyond its limit of 25 ms/);
  assert.equal(count(draw([7_000, 24_000]), 'class="broken"'), 0);
});

test("advice over its limit is marked otherwise", () => {
  const svg = draw([31_000], { blocking: false });
  assert.equal(count(svg, 'class="broken"'), 0);
  assert.equal(count(svg, 'class="beyond"'), 1);
  assert.match(svg, /\(advice\)/);
});

test("a limit is a dashed line, with a step where it was changed", () => {
  const runs = [...runsOf([7_000, 7_000]), ...runsOf([7_000, 7_000], { limit: 12_000 })];
  const svg = renderChart(buildModel(runs).groups[0].cases[0].charts[0], "title");
  const [, path] = svg.match(/class="limit stat-p95" d="([^"]+)"/);
  assert.equal(count(path, "M"), 1);
  assert.equal(count(path, "V"), 1);
});

test("a run without the value leaves a gap", () => {
  const [, path] = draw([7_000, null, 8_000]).match(/stat-p95"><path class="line" d="([^"]+)"/);
  assert.equal(count(path, "M"), 2);
});

test("one run is a point in the middle, under its limit", () => {
  const svg = draw([7_000]);
  assert.equal(count(svg, "<circle"), 2);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
});

test("all zero draws, too", () => {
  assert.doesNotMatch(draw([0, 0], { limit: 0 }), /NaN|Infinity|undefined/);
});

test("few labels, whatever the number of runs; the newest run has one", () => {
  for (const runs of [1, 2, 5, 6, 7, 40, 200]) {
    const svg = draw(Array(runs).fill(7_000));
    assert.ok(count(svg, "<tspan") <= 5, `${runs} runs have ${count(svg, "<tspan")} labels`);
    assert.match(svg, new RegExp(`>${String(runs - 1).repeat(40).slice(0, 7)}<tspan`));
  }
});

test("runs of one day are told apart by their time, others by their date", () => {
  assert.match(draw([7_000]), /<tspan[^>]*>10:15</);
  assert.match(draw([7_000, 7_000]), /<tspan[^>]*>11-11</);
});

test("a commit leads to the commit and a column to its run, where these are known", () => {
  const [run] = runsOf([7_000]);
  assert.match(draw([7_000]), new RegExp(`href="https://github.example/acme/firmware/commit/${run.commit}"`));
  assert.match(draw([7_000]), /href="https:\/\/github.example\/acme\/firmware\/actions\/runs\/17"/);
  const local = buildModel([{ ...run, url: "" }, { ...run, url: "javascript:alert(1)" }]).groups[0].cases[0].charts[0];
  assert.doesNotMatch(renderChart(local, "title"), /href/);
});

test("the legend says newest value and limit of each statistic", () => {
  const text = renderLegend(chartOf([7_000, 31_000])).replace(/<[^>]*>/g, "");
  assert.equal(text, "p50 15.5 ms p95 31 ms limit 25 ms");
});

test("a value and its limit have each its own unit", () => {
  const text = renderLegend(chartOf([1_500_000])).replace(/<[^>]*>/g, "");
  assert.equal(text, "p50 750 ms p95 1.5 s limit 25 ms");
});

test("the legend gives no figure of another run", () => {
  const text = renderLegend(chartOf([31_000, null])).replace(/<[^>]*>/g, "");
  assert.equal(text, "p50 – p95 – ");
});

test("statistics that share a chart have colours of their own", () => {
  const css = readFileSync(new URL("../style.css", import.meta.url), "utf8");
  const colour = (stat) => css.match(new RegExp(`\\.stat-${stat}\\b[^{]*\\{ --s: var\\((--\\w+)\\)`))[1];
  const colours = ["p50", "p95", "p99", "p99_9", "max"].map(colour);
  assert.equal(new Set(colours).size, colours.length, `${colours}`);
});
