// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "htm/preact";
import { render } from "preact-render-to-string";

import { opensAtFirst } from "../trend/tiles.js";
import { readTrend } from "../trend/model.js";
import { sampleTrend, smallTrend } from "./sample.js";
import { EMPTY } from "../trend/state.js";
import { Page } from "../trend/view.js";

const nothing = () => undefined;
const show = (json, change = {}) =>
  render(html`<${Page} trend=${readTrend(json)} state=${{ ...EMPTY, ...change }} update=${nothing} onHelp=${nothing} />`);
const words = (page) => page.replace(/<[^>]*>/g, " ").replace(/&amp;/g, "&").replace(/\s+/g, " ");
const many = (count) => sampleTrend({ nights: 40, boards: 1, cases: 1, plant: Array.from({ length: count }, (_, n) => ({ night: n + 2, change: 0.1 })) });

test("the first lines say what the page is about", () => {
  assert.match(words(show(sampleTrend({ nights: 30, boards: 4, cases: 1, racks: 2 }))), /30 nights, 4 boards, 2 racks; newest [0-9a-f]{7} of 2026-11-20/);
  const json = smallTrend();
  json.runs.trigger[0] = "local";
  assert.match(words(show(json)), /24 runs, 3 boards, 1 rack;/);
});

test("each event is a row in the order given: effect, headline, board, date, commits, before and after, change, cause", () => {
  const json = smallTrend();
  const page = show(json);
  const rows = [...page.matchAll(/<tr id="event-(\d+)".*?<\/tr>/gs)].map(([row]) => words(row));
  assert.equal(rows.length, json.events.length);
  const [{ headline, night, good, bad }] = json.events;
  for (const part of ["▲ worse", headline, "3 boards", night, `${good.slice(0, 7)} .. ${bad.slice(0, 7)}`, " ms → ", "+65 % +64 to +66 %", "firmware"]) {
    assert.ok(rows[0].includes(part), `${part} in ${rows[0]}`);
  }
  assert.match(rows[1], /◆ worse .* lab\/e3 .* board/);
  assert.match(rows[2], /○ worse .* environment/);
  assert.match(rows[3], /▲ better .* firmware/);
});

test("commits lead to where the run's address says that they are, and nowhere else", () => {
  const json = smallTrend();
  assert.ok(show(json).includes(`href="https://github.example/acme/firmware/commit/${json.events[0].bad}"`));
  json.runs.url = json.runs.url.map(() => "javascript:alert(1)/actions/runs/1");
  assert.doesNotMatch(show(json), /javascript:/);
});

test("only firmware that got worse is red", () => {
  const tones = [...show(smallTrend()).matchAll(/class="event (tone-\w+)/g)].map(([, tone]) => tone);
  assert.deepEqual(tones, ["tone-bad", "tone-unsure", "tone-unsure", "tone-good"]);
});

test("the bar of a broken limit is red, of a kept one green: above its high is red, up to its low is green", () => {
  const bars = [...show(smallTrend()).matchAll(/<meter [^>]*low="0.8" high="([\d.]+)" optimum="0" value="([\d.]+)"><\/meter>\s*<b class(?:="(\w+)")?>/g)];
  const looks = bars.map(([, high, value, tone]) => `${tone ?? "kept"} ${Number(value) > Number(high) ? "red" : Number(value) > 0.8 ? "yellow" : "green"}`);
  assert.deepEqual([...new Set(looks)], ["bad red", "kept green"]);
});

test("an event of the address is open: its sentence, conditions, how to bisect, and a link to each chart", () => {
  const json = smallTrend();
  const closed = show(json);
  const page = show(json, { event: 0 });
  assert.doesNotMatch(closed, /git bisect|aria-expanded="true" aria-controls="event/);
  assert.match(page, /aria-expanded="true" aria-controls="event-0-more"/);
  assert.ok(page.includes(json.events[0].bisect));
  assert.ok(page.includes('href="#event=0&amp;chart=lab/e1/publish/transport=tls/publish+latency"'));
  assert.match(words(show(json, { event: 2 })), /e1\.channel: 6 → 11 on/);
});

test("at most eight events at first; all where they are asked for, or where a later one is open", () => {
  const rows = (change) => [...show(many(12), change).matchAll(/<tr id="event-/g)].length;
  assert.deepEqual([rows({}), rows({ all: true }), rows({ event: 10 })], [8, 12, 11]);
  assert.match(show(many(12)), /Show all 12/);
  assert.doesNotMatch(show(many(8)), /Show all/);
});

test("where nothing changed it says over how many nights, and where none was judged it says so", () => {
  const json = sampleTrend({ nights: 30, boards: 1, cases: 1 });
  assert.match(words(show(json)), /No change point in 30 nights\./);
  json.series.forEach(({ levels, points }) => levels.splice(0, levels.length, { ...levels[0], from: points.run.length - 12 }));
  assert.match(words(show(json)), /No change point in 12 nights\./);
  json.series.forEach((series) => { series.levels = []; });
  assert.match(words(show(json)), /No night was judged: change points come from nightly runs\./);
});

test("broken limits stand in the open, what is near to its limit is folded", () => {
  const [open, folded] = show(smallTrend()).split('<details class="nearest">');
  assert.match(words(open), /3 limits broken now .*e\d publish transport=tls publish latency p95 3\d(\.\d)? ms ≤ 25 ms 1[23]\d %/);
  assert.match(words(folded), /^ Nearest to their limits .*publish latency p99/);
  assert.doesNotMatch(folded.split("</details>")[0], /class="n bad"/);
  assert.doesNotMatch(show(sampleTrend({ nights: 9, boards: 1, cases: 1 })), /broken now/);
});

test("a figure among timeouts reads at least", () => {
  const json = smallTrend();
  const broken = json.series.find(({ id }) => id === "lab/e1/publish/transport=tls/publish_latency_p95_us");
  assert.doesNotMatch(show(json), /bad">≥/);
  broken.points.at_least = [broken.now];
  assert.match(show(json), /class="n bad">≥ 3\d(\.\d)? ms/);
});

test("virtual and simulated figures are named once, at the top, where all are", () => {
  const page = show(sampleTrend({ nights: 9, boards: 2, cases: 2, kind: "virtual", simulated: "noise", plant: [{ night: 5, change: 0.2 }] }));
  assert.match(page, /<span class="badge">simulated noise<\/span>.*<span class="badge">virtual<\/span>/);
  assert.match(page, /<p class="remark">Virtual figures/);
  const below = words(page.slice(page.indexOf("<main>")));
  assert.doesNotMatch(below, /\(virtual/);
  assert.doesNotMatch(show(sampleTrend({ nights: 5, boards: 2, cases: 2 })), /virtual|simulated/i);
});

test("where kinds are mixed each board says its own", () => {
  const json = sampleTrend({ nights: 9, boards: 2, cases: 1, kind: "virtual", plant: [{ night: 5, change: 0.2 }] });
  json.series.filter(({ board }) => board === "e2").forEach((series) => { series.kind = "physical"; });
  const titles = [...show(json).matchAll(/<figcaption>(.*?)<\/figcaption>/gs)].map(([, title]) => title);
  assert.ok(titles.some((title) => title.includes("e1 (virtual)")));
  assert.ok(titles.some((title) => /e2<\/small>/.test(title)));
});

test("an opened event shows one quantity of all boards, those that changed first, and the rest is a line that opens", () => {
  const json = sampleTrend({ nights: 20, boards: 4, cases: 2, plant: [{ night: 10, change: 0.2, metrics: /latency_p95/ }] });
  const page = show(json, { event: 0 });
  const part = page.slice(page.indexOf('class="event-charts"'), page.indexOf("series-list"));
  const boards = [...part.matchAll(/<figcaption>.*?<button[^>]*>lab\/(\w+)<.*?<small>([^<]*)/gs)].map(([, board, step]) => [board, step]);
  assert.equal(boards.length, 4);
  assert.ok(boards[0][1].startsWith("+"), boards.join(" "));
  assert.match(page, /<details class="series-list"><summary>All \d+ series that show it/);
});

test("an opened event says whose commit it began with, how many lie in the range, and leads to their diff", () => {
  const json = smallTrend();
  const commit = { title: "Send <at> once", author: "A. Author", count: 3, diff: "https://git.example/a/b/compare/1...2" };
  Object.assign(json.events[0], { state: "open", ended: "", open_nights: 59, commit });
  const page = show(json, { event: 0 });
  assert.match(words(page), /open 59 nights/);
  assert.match(page, /“Send &lt;at> once”, A\. Author, 3 commits in the range/);
  assert.ok(page.includes('href="https://git.example/a/b/compare/1...2"'));
  Object.assign(json.events[0], { state: "ended", ended: "2026-10-02", open_nights: 20, commit: { ...commit, diff: "javascript:1" } });
  assert.match(words(show(json, { event: 0 })), /ended 2026-10-02, after 20 nights/);
  assert.doesNotMatch(show(json, { event: 0 }), /javascript:/);
});

test("before the third run the limits that are nearest stand in the open, the nearest first, and no chart does", () => {
  const page = show(sampleTrend({ nights: 1, boards: 3, cases: 2 }));
  const [table] = page.match(/<details (?:open class="nearest"|class="nearest" open).*?<\/table>/s);
  const shares = [...table.matchAll(/(\d+) %/g)].map(([, share]) => Number(share));
  assert.ok(shares.length >= 3);
  assert.deepEqual(shares, [...shares].sort((a, b) => b - a));
  assert.doesNotMatch(page, /<figure class="tile/);
  assert.match(show(sampleTrend({ nights: 3, boards: 1, cases: 1 })), /<details class="nearest"><summary>/);
  assert.doesNotMatch(show(sampleTrend({ nights: 1, boards: 2, cases: 1, racks: 2 })), /<figure class="tile/);
});

test("figures that are not measured on silicon are explained where the report has no sentence of its own", () => {
  const page = show({ ...sampleTrend({ nights: 5, boards: 1, cases: 1, kind: "emulated" }), remark: "" });
  assert.match(page, /<p class="remark">Among the figures are emulated ones/);
});

test("what changed or broke is coloured, everything else is quiet", () => {
  const json = sampleTrend({ nights: 20, boards: 1, cases: 1, plant: [{ night: 10, change: 0.2, metrics: /throughput/ }] });
  const tiles = [...show(json).matchAll(/<figure class="tile( quiet)?">.*?<button[^>]*>([^<]*)</gs)].map(([, quiet, name]) => [name, Boolean(quiet)]);
  assert.deepEqual(tiles[0], ["publish throughput", false]);
  assert.deepEqual(tiles.slice(1).map(([, quiet]) => quiet), [true, true, true]);
});

test("the first groups open where something changed or broke; the first one always, a past one never", () => {
  const opens = (rank, index, measuredNow = true) => opensAtFirst({ measuredNow, rank: { broken: false, changed: "", ...rank } }, index);
  assert.deepEqual([opens({}, 0), opens({}, 1), opens({ broken: true }, 1), opens({ changed: "better" }, 1)], [true, false, true, true]);
  assert.equal(opens({ broken: true }, 0, false), false);
  assert.deepEqual([opens({ broken: true }, 2), opens({ broken: true }, 3)], [true, false]);
});

test("of many groups that changed the first three are open", () => {
  const page = show(sampleTrend({ nights: 20, boards: 4, cases: 8, plant: [{ night: 10, change: 0.2, metrics: /latency/ }] }));
  assert.ok(page.match(/aria-controls="group/g).length > 8);
  assert.equal(page.match(/aria-expanded="true" aria-controls="group/g).length, 3);
});

test("a closed group has no chart in it, and an open one has a button for each", () => {
  const page = show(sampleTrend({ nights: 5, boards: 2, cases: 5 }));
  const charts = page.match(/data-chart=/g).length;
  assert.equal(page.match(/aria-expanded="true" aria-controls="group/g).length, 1);
  assert.ok(charts > 0 && charts <= 16, `${charts} charts`);
});

test("how many charts are shown is said aloud", () => {
  const json = sampleTrend({ nights: 5, boards: 2, cases: 2 });
  assert.match(show(json), /role="status" aria-live="polite">16 charts</);
  assert.match(show(json, { board: "e1" }), /role="status" aria-live="polite">8 of 16 charts</);
  const none = words(show(json, { board: "gone" }));
  assert.match(none, /0 of 16 charts Show everything .*No chart matches\./);
});

test("what was chosen is marked in the filters, also what this report does not have", () => {
  const page = show(sampleTrend({ nights: 5, boards: 2, cases: 1 }), { board: "gone", stat: ["p99"], changed: true, text: "tls" });
  assert.match(page, /<option value="gone" selected|<option selected value="gone"/);
  assert.match(page, /aria-pressed="true"[^>]*>p99</);
  assert.match(page, /value="tls"/);
});

test("what the reported run did not measure has a heading of its own", () => {
  const json = sampleTrend({ nights: 5, boards: 2, cases: 1 });
  json.series.filter(({ board }) => board === "e2").forEach((series) => { series.now = null; });
  const [now, past] = show(json).split("Not measured in this run");
  assert.match(words(past), /publish on e2 4 charts · last measured 2026-11-20 01:15/);
  assert.doesNotMatch(now.split("<section class=\"group")[1], /publish on e2/);
});

test("a run that measured nothing says so, and shows what there was", () => {
  const json = sampleTrend({ nights: 5, boards: 1, cases: 1 });
  json.series.forEach((series) => { series.now = null; });
  const page = words(show(json));
  assert.match(page, /The run that is reported measured nothing\. Not measured in this run/);
  assert.doesNotMatch(page, /Nearest to their limits|broken now/);
});

test("notes and runs that are not drawn are told", () => {
  const page = words(show({ ...smallTrend(), notes: ["out/history/lab/x.json: damaged."], dropped_runs: 12 }));
  assert.match(page, /12 older runs are not drawn/);
  assert.match(page, /out\/history\/lab\/x\.json: damaged\./);
});

test("a report without a run is a page", () => {
  const page = words(show(sampleTrend({ nights: 0, boards: 0 })));
  assert.match(page, /No run has measured anything yet/);
  assert.doesNotMatch(page, /NaN|undefined|null/);
});

test("no name can become markup, a style or a script's address", () => {
  const evil = '"><img src=x onerror=alert(1)></script>';
  const json = smallTrend();
  json.title = json.remark = evil;
  json.notes = [evil];
  json.links = { home: "javascript:alert(1)", tests: "//evil.example/x" };
  json.events.forEach((event) => Object.assign(event, {
    headline: evil, sentence: evil, note: evil, bisect: evil, boards: [evil], conditions: [evil], cause: evil, effect: evil,
  }));
  json.series.forEach((series) => Object.assign(series, { board: evil, case_id: evil, label: evil, quantity: evil, target: evil, unit: evil }));
  const page = show(json, { event: 0, text: evil, board: evil });
  assert.ok(page.includes("&lt;img"));
  assert.doesNotMatch(page, /<img|<script|<\/script|javascript:|href="\/\/|href="data:| style=/);
});

test("headings go down one step at a time, tables have captions, and regions have names", () => {
  const page = show(smallTrend(), { event: 0 });
  const levels = [...page.matchAll(/<h([1-6])\b/g)].map(([, level]) => Number(level));
  assert.equal(levels[0], 1);
  levels.slice(1).forEach((level, index) => assert.ok(level <= levels[index] + 1, `h${level} after h${levels[index]}`));
  assert.equal(page.match(/<table/g).length, page.match(/<caption/g).length);
  for (const [, id] of page.matchAll(/aria-labelledby="([^"]+)"/g)) assert.ok(page.includes(`id="${id}"`), id);
});
