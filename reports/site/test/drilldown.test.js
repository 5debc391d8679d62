// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "htm/preact";
import { renderToString } from "preact-render-to-string";

import { median } from "../trend/detail.js";
import { Drilldown } from "../trend/drilldown.js";
import { placeLink } from "../trend/html.js";
import { readTrend } from "../trend/model.js";
import { EMPTY } from "../trend/state.js";
import { random, sampleTrend, smallTrend } from "./sample.js";

const count = (text, part) => text.split(part).length - 1;
const words = (markup) => markup.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
const names = (markup) => [...markup.matchAll(/role="img" aria-label="([^"]*)"/g)].map(([, name]) => name);

/** A drill-down of the latency of the first case; `change` may change its detail first. */
function open(change = (detail) => detail, json = smallTrend(), changeChart = (chart) => chart) {
  const trend = readTrend(json);
  const chart = changeChart(trend.charts.find(({ quantity }) => quantity === "publish latency"));
  const details = { [chart.key]: change(structuredClone(json.details[chart.key])) };
  return renderToString(html`<${Drilldown} trend=${readTrend({ ...json, details })} chart=${chart} state=${EMPTY} update=${() => {}} />`);
}

test("it is a dialog with a name", () => {
  const markup = open();
  assert.match(markup, /<dialog class="drill" aria-labelledby="drill-title">/);
  assert.match(words(markup), /publish latency on e3 ✕/);
  assert.match(markup, /id="drill-title"/);
});

test("the newest thirty runs are a table, with commits and values in words", () => {
  const markup = open(undefined, sampleTrend({ nights: 40, boards: 1, cases: 1 }));
  assert.match(markup, /The newest 30 of 40 runs/);
  assert.equal(count(markup.split("<tbody>")[1], "<tr>"), 30);
  assert.match(markup, /href="https:\/\/github.example\/acme\/firmware\/commit\/[0-9a-f]{40}"/);
  assert.match(words(open()), /ms, broken/);
});

test("both distributions lie over one another with their counts", () => {
  assert.match(names(open())[1], /^Samples of publish latency: reference firmware, [\d,]+ samples; candidate, [\d,]+ samples$/);
});

test("a limit beyond the axis is told in words, and so is that no other firmware was measured", () => {
  const text = words(open((detail) => ({ ...detail,
    distribution: { ...detail.distribution, other: null, role: null, other_samples: null, limits: [{ stat: "p99", value: 9e9 }] } })));
  assert.match(text, /The limit of p99, 9,000 s, lies beyond what is drawn/);
  assert.match(text, /No other firmware was measured in this run/);
});

test("boots are told by firmware, with the median of each", () => {
  const markup = open((detail) => ({ ...detail, boots: {
    role: ["candidate", "base", "candidate", "reference"], index: [0, 0, 1, 1], stats: { p99: [10_000, 20_000, 12_000, null] } } }));
  assert.equal(names(markup)[2], "publish latency p99 of each boot: candidate, median 11 ms of 2 boots; base, median 20 ms of 1 boot; reference firmware, no value");
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test("what is not there says why", () => {
  assert.match(words(open((detail) => ({ ...detail, distribution: null, boots: null }))), /kept no samples of this figure.*kept no values of single boots/);
  assert.match(words(open(() => undefined)), /kept only summaries of this figure/);
  assert.match(words(open(() => undefined, smallTrend(), (chart) => ({ ...chart, measuredNow: false }))),
    /did not measure this figure/);
});

test("it leads to the test and the files, but to no address that could run something", () => {
  const markup = open((detail) => ({ ...detail, test: "a b", files: [{ text: "samples", href: "../runs/x.csv" }, { text: "evil", href: "javascript:alert(1)" }] }));
  assert.match(markup, /href="\.\.\/tests\/index\.html#a%20b"/);
  assert.match(markup, /href="\.\.\/runs\/x\.csv"/);
  assert.doesNotMatch(markup, /javascript:|evil/);
  const named = open((detail) => ({ ...detail, test: "ab", files: [{ text: "samples, in the test report", href: "../tests/index.html#ab" }] }));
  assert.equal(count(named, "index.html#ab"), 1);
  for (const address of ["javascript:alert(1)", " javascript:x", "data:text/html,x", "//evil.example", "\\\\evil", "java\nscript:x", "file:///etc"]) assert.equal(placeLink(address), "", address);
  for (const address of ["https://x.example/a", "../a/b:c.csv", "a#b"]) assert.equal(placeLink(address), address);
});

test("a virtual board is called so in the heading", () => {
  assert.match(words(open(undefined, sampleTrend({ nights: 3, boards: 1, cases: 1, kind: "virtual", simulated: "noise" }))), /e1 \(virtual, simulated noise\)/);
});

test("there is no NaN, no undefined, no infinity and no style attribute in a drill-down of any data", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const next = random(seed);
    const pick = (choices) => choices[Math.floor(next() * choices.length)];
    const column = (length, choices) => Array.from({ length }, () => pick(choices));
    const [bins, size, start] = [pick([0, 1, 2, 30]), pick([0, 1, 2, 40]), pick([0, 1, 1e-9])];
    const markup = open((detail) => ({ ...detail, unit: pick(["us", "ratio", "bytes"]),
      distribution: { scale: pick(["log", "linear"]), edges: Array.from({ length: bins + 1 }, (_, n) => start + n * n), candidate: column(bins, [0, 0, 5, 1e9]),
        other: pick([null, column(bins, [0, 3])]), role: pick(["base", "reference"]), candidate_samples: 5, other_samples: 3, limits: [{ stat: "p99", value: pick([0, 4, 1e300]) }] },
      boots: { role: column(size, ["candidate", "base", "odd"]), index: column(size, [0, 1]), stats: { p50: column(size, [null, 0, 5, 1e300]) } },
    }));
    assert.equal(/.{0,90}(?:NaN|undefined|Infinity|style=).{0,40}/.exec(markup)?.[0], undefined, `seed ${seed}`);
  }
});
