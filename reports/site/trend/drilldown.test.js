// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "htm/preact";
import { renderToString } from "preact-render-to-string";

import { median } from "./boots.js";
import { placeLink } from "./details.js";
import { shareAt } from "./distribution.js";
import { Drilldown } from "./drilldown.js";
import { makeAxis } from "./frame.js";
import { readTrend } from "./model.js";
import { random, sampleTrend, smallTrend } from "./sample.js";
import { shownWords } from "./samples.js";

const TABS = ["runs", "distribution", "boots", "samples", "wire"];
const count = (text, part) => text.split(part).length - 1;
const words = (markup) => markup.replace(/<(?:svg|title|desc).*?<\/(?:svg|title|desc)>/gs, " ").replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

/** A drill-down of the latency of the first case; `change` may change its detail first. */
function open(tab, change = (detail) => detail, json = smallTrend(), changeChart = (chart) => chart) {
  const trend = readTrend(json);
  const chart = changeChart(trend.charts.find(({ quantity }) => quantity === "publish latency"));
  const details = { [chart.key]: change(structuredClone(json.details[chart.key])) };
  return renderToString(html`<${Drilldown} trend=${readTrend({ ...json, details })} chart=${chart} tab=${tab} onTab=${() => {}} onClose=${() => {}} />`);
}

test("it is a modal dialog with a name, and its tabs say which one is open", () => {
  const markup = open("boots");
  assert.match(markup, /role="dialog" aria-modal="true" aria-labelledby="drill-title"/);
  assert.match(markup, /id="drill-title"/);
  assert.equal(count(markup, 'role="tab"'), 5);
  assert.equal(count(markup, 'aria-selected="true"'), 1);
  assert.match(markup, /id="drill-tab-boots" aria-selected="true"/);
  assert.match(markup, /role="tabpanel" aria-labelledby="drill-tab-boots"/);
  assert.match(open("nonsense"), /id="drill-tab-runs" aria-selected="true"/);
});

test("over time there are the newest thirty runs as a table, with commits and values in words", () => {
  const markup = open("runs", undefined, sampleTrend({ nights: 40, boards: 1, cases: 1 }));
  assert.match(markup, /The newest 30 of 40 runs/);
  assert.equal(count(markup.split("<tbody>")[1], "<tr>"), 30);
  assert.match(markup, /href="https:\/\/github.example\/acme\/firmware\/commit\/[0-9a-f]{40}"/);
  assert.match(words(open("runs")), /ms, broken/);
});

test("both distributions lie over one another with their counts, and the limit is a line in both plots", () => {
  const markup = open("distribution", (detail) => ({ ...detail, distribution: { ...detail.distribution,
    limits: [{ stat: "p95", value: detail.distribution.edges[20] }] } }));
  assert.equal(count(markup, 'class="steps role-'), 2);
  assert.equal(count(markup, 'class="ecdf role-'), 2);
  assert.equal(count(markup, 'class="limit"'), 2);
  assert.match(words(markup), /reference firmware [\d,]+ samples candidate [\d,]+ samples/);
});

test("a limit beyond the axis is told in words, and so is that no other firmware was measured", () => {
  const text = words(open("distribution", (detail) => ({ ...detail,
    distribution: { ...detail.distribution, other: null, role: null, other_samples: null, limits: [{ stat: "p99", value: 9e9 }] } })));
  assert.match(text, /The limit of p99, 9,000 s, lies beyond what is drawn/);
  assert.match(text, /No other firmware was measured in this run/);
});

test("each boot is a mark whose shape says the firmware, with the median of each", () => {
  const markup = open("boots", (detail) => ({ ...detail, boots: {
    role: ["candidate", "base", "candidate", "reference"], index: [0, 0, 1, 1], stats: { p99: [10_000, 20_000, 12_000, null] } } }));
  const plot = markup.split("</ul>")[1];
  assert.equal(count(plot, 'class="mark"'), 3);
  assert.match(plot, /a4 4 0/);
  assert.match(plot, /h7v7h-7z/);
  assert.match(words(markup), /candidate median 11 ms of 2 boots base median 20 ms of 1 boot reference firmware no value/);
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test("an axis that does not begin at zero says so", () => {
  const of = (values) => open("boots", (detail) => ({ ...detail, boots: { role: values.map(() => "base"), index: values.map((_, n) => n), stats: { p50: values } } }));
  assert.match(of([100, 101]), /the axis does not begin at zero/);
  assert.doesNotMatch(of([10, 101]), /does not begin at zero/);
});

test("samples say how many of how many are shown, and what failed has marks above", () => {
  assert.match(open("samples"), /600 of 12,000 samples shown, extremes kept; 2 failed\./);
  assert.equal(count(open("samples").match(/class="failed".*?<path d="([^"]*)"/s)[1], "M"), 2);
  const few = { boot: [0], time_s: [1], value: [5], of: 1, failed_time_s: [] };
  assert.equal(shownWords(few), "All 1 samples shown; none failed.");
  assert.match(open("samples", (detail) => ({ ...detail, samples: { boot: [], time_s: [], value: [], of: 0, failed_time_s: [1, 2, 3] } })),
    /No sample of this figure succeeded; 3 failed/);
});

test("symptoms on the wire have their count and display filter; where there are none, the reason", () => {
  assert.match(words(open("wire")), /retransmission 12 tcp\.analysis\.retransmission/);
  assert.match(open("wire", (detail) => ({ ...detail, wire: [], wire_note: "No capture: no peer." })), /No capture: no peer\./);
});

test("what is not there says why, in each tab", () => {
  const nothing = (detail) => ({ ...detail, distribution: null, boots: null, samples: null, wire: [], wire_note: "" });
  for (const tab of TABS.slice(1)) assert.match(words(open(tab, nothing)), /kept no|Nothing was captured/, tab);
  for (const tab of TABS.slice(1)) {
    assert.match(words(open(tab, () => undefined)), /kept only summaries of this figure/, tab);
    assert.match(words(open(tab, () => undefined, smallTrend(), (chart) => ({ ...chart, measuredNow: false }))),
      /This report is about another run\. This figure was last measured on 2026-11-20 \([0-9a-f]{7}\)/, tab);
  }
});

test("it leads to the test and the files, but to no address that could run something", () => {
  const markup = open("wire", (detail) => ({ ...detail, test: "a b", files: [{ text: "samples", href: "../runs/x.csv" }, { text: "evil", href: "javascript:alert(1)" }] }));
  assert.match(markup, /href="\.\.\/tests\/index\.html#a%20b"/);
  assert.match(markup, /href="\.\.\/runs\/x\.csv"/);
  assert.doesNotMatch(markup, /javascript:|evil/);
  const named = open("wire", (detail) => ({ ...detail, test: "ab", files: [{ text: "samples, in the test report", href: "../tests/index.html#ab" }] }));
  assert.equal(count(named, "index.html#ab"), 1);
  for (const address of ["javascript:alert(1)", " javascript:x", "data:text/html,x", "//evil.example", "\\\\evil", "java\nscript:x", "file:///etc"]) assert.equal(placeLink(address), "", address);
  for (const address of ["https://x.example/a", "../a/b:c.csv", "a#b"]) assert.equal(placeLink(address), address);
});

test("a virtual board is called so in every tab's heading", () => {
  const json = sampleTrend({ nights: 3, boards: 1, cases: 1, kind: "virtual", simulated: "noise" });
  for (const tab of TABS) assert.match(words(open(tab, undefined, json)), /e1 \(virtual, simulated noise\)/, tab);
});

test("the share of samples is read at the upper edge of its bin", () => {
  assert.equal(shareAt([0, 1, 2, 4], [1, 1, 2], 0.5), 2);
  assert.equal(shareAt([0, 1, 2, 4], [0, 0, 2], 0.5), 4);
});

test("there is no NaN, no undefined, no infinity and no style attribute in a drill-down of any data", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const next = random(seed);
    const pick = (choices) => choices[Math.floor(next() * choices.length)];
    const column = (length, choices) => Array.from({ length }, () => pick(choices));
    const [bins, size] = [pick([0, 1, 2, 30]), pick([0, 1, 2, 40])];
    const start = pick([0, 1, 1e-9]);
    const markup = TABS.map((tab) => open(tab, (detail) => ({ ...detail, unit: pick(["us", "ratio", "bytes"]),
      distribution: { scale: pick(["log", "linear"]), edges: Array.from({ length: bins + 1 }, (_, n) => start + n * n), candidate: column(bins, [0, 0, 5, 1e9]),
        other: pick([null, column(bins, [0, 3])]), role: pick(["base", "reference"]), candidate_samples: 5, other_samples: 3, limits: [{ stat: "p99", value: pick([0, 4, 1e300]) }] },
      boots: { role: column(size, ["candidate", "base", "odd"]), index: column(size, [0, 1]), stats: { p50: column(size, [null, 0, 5, 1e300]) } },
      samples: { boot: column(size, [0, 1]), time_s: column(size, [0, 1.5]), value: column(size, [0, 3, 1e6, 1e300]), of: 99, failed_time_s: column(pick([0, 2]), [0, 7]) },
    }))).join("");
    assert.equal(/.{0,90}(?:NaN|undefined|Infinity|style=).{0,40}/.exec(markup)?.[0], undefined, `seed ${seed}`);
  }
});

test("a logarithmic axis of less than a decade still has labels to its end, and one of many has not too many", () => {
  const labels = (ends, count) => makeAxis({ ends, unit: "us", range: [0, 900], log: true, count }).ticks.map(({ text }) => text);
  assert.deepEqual(labels([6_900, 16_500], 12), ["7", "8", "9", "10", "15"]);
  assert.deepEqual(labels([1_000, 100_000], 5), ["1", "2", "5", "10", "20", "50", "100"]);
});
