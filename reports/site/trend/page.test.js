import assert from "node:assert/strict";
import { test } from "node:test";

import { buildModel } from "./model.js";
import { renderPage } from "./page.js";
import { runsOf } from "./sample.js";

const WORDS = { title: "HIL performance", remark: "Virtual figures are not real.", style: "b{}", home: "../index.html" };
const render = (runs, options) => renderPage(buildModel(runs, options), WORDS);

test("every chart of a virtual board says so in its title", () => {
  const page = render(runsOf([7_000], { kind: "virtual" }));
  const titles = [...page.matchAll(/<figcaption>(.*?)<\/figcaption>/g)].map(([, title]) => title);
  assert.ok(titles.length);
  assert.ok(titles.every((title) => title.includes("(virtual)")));
  assert.match(page, /Virtual figures are not real/);
  assert.doesNotMatch(render(runsOf([7_000])), /virtual/i);
});

test("a name cannot become markup", () => {
  const page = render(runsOf([7_000], { board: "<img src=x>", label: '"><script>alert(1)</script>', case_id: "a&b/c" }));
  assert.doesNotMatch(page, /<img|<script>alert/);
});

test("what is nearest to its limit stands in the table, with a link to its chart", () => {
  const page = render(runsOf([7_000, 31_000]));
  const [, id] = page.match(/<a href="#(c[0-9a-f]+)">publish latency p95<\/a>/);
  assert.ok(page.includes(`<figure id="${id}">`));
  assert.match(page, /class="n bad">31 ms/);
  assert.match(page, /124 %/);
});

test("what the reported run did not measure stands apart, with its date and not in red", () => {
  const page = render([...runsOf([90_000], { board: "gone" }), ...runsOf([7_000], { first: 1 })]);
  const [now, past] = page.split("Not measured in this run");
  assert.doesNotMatch(now.split("<h2>Every series")[0], /gone|90 ms/);
  assert.match(past, /gone \(physical\).*1 case, last measured 2026-11-10 10:15/);
  assert.match(past, /<span class="of">90 ms<\/span>/);
  assert.doesNotMatch(past, /class="bad"|data-broken|<b>90 ms/);
});

test("a run that measured nothing says so, and shows what there was", () => {
  const [first, second] = runsOf([7_000, 8_000]);
  const page = render([first, { ...second, cases: [] }]);
  assert.match(page, /The run that is reported measured nothing/);
  assert.match(page, /Not measured in this run/);
});

test("the air profile is named, and only where there is one", () => {
  const page = render(runsOf([7_000], { kind: "virtual", profile: "hotspot" }));
  assert.match(page, /<p class="soft">Air profile hotspot\. One run/);
  assert.match(page, /b1 \(virtual\)<span class="soft">air hotspot/);
  assert.doesNotMatch(render(runsOf([7_000])), /air/i);
});

test("runs that are left out are counted", () => {
  assert.match(render(runsOf([7_000, 7_000, 7_000]), { most: 2 }), /The newest 2 of 3 runs: /);
});

test("a figure among timeouts reads at least", () => {
  const [run] = runsOf([90_000]);
  run.cases[0].metrics.publish_latency_p95_us.at_least = true;
  assert.match(render([run]), /class="n bad">≥ 90 ms/);
});

test("what is nearest to its limit says of which bench it is", () => {
  const near = (label) => render(runsOf([24_000], { case_id: "publish/x", label })).split("Every series")[0];
  assert.match(near("qos=0"), /<td>publish qos=0<td>/);
  assert.match(near("defaults"), /<td>publish<td>/);
});

test("a change from one run to the next has no colour", () => {
  assert.doesNotMatch(render(runsOf([7_000, 21_000])), /class="[^"]*\b(bad|good|broken)\b/);
});

test("a page without runs is a page", () => {
  assert.match(render([]), /No run has measured anything yet/);
});

test("200 runs of 400 series stay below 12 MB, and all groups but the worst are closed", () => {
  const places = Array.from({ length: 200 }, (_, n) => ({ board: `b${n % 4}`, case_id: `publish/n=${n}`, label: `n=${n}` }));
  const byPlace = places.map((place) => runsOf(Array(200).fill(7_000), place));
  const runs = byPlace[0].map((run, index) => ({ ...run, cases: byPlace.map((ofPlace) => ofPlace[index].cases[0]) }));
  const page = render(runs);
  assert.ok(page.length < 12e6, `${page.length} bytes`);
  assert.equal(page.match(/<details class="group"/g).length, 4);
  assert.equal(page.match(/<details class="group"[^>]* open/g).length, 1);
});
