// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { random } from "./sample_steps.js";
import { EMPTY, isFiltered, readState, writeState } from "../trend/state.js";

test("what an address says is what is shown, and a key that nobody knows is left out", () => {
  const state = readState("#board=e1&stat=p99&event=3&chart=lab/e1/publish/qos=1/publish+latency&tab=boots&utm=x&__proto__=1");
  const said = { board: "e1", stat: ["p99"], event: 3, chart: "lab/e1/publish/qos=1/publish latency" };
  assert.deepEqual(state, { ...EMPTY, ...said });
});

test("garbage is no state", () => {
  const garbage = "#stat=p98,x&event=-1&theme=pink&from=2026-02-30&to=tomorrow&changed=yes&broken=&%&=&&event=1e3&event=99999999999";
  assert.deepEqual(readState(garbage), EMPTY);
  assert.deepEqual([readState(""), readState("#")], [EMPTY, EMPTY]);
  assert.equal(readState(`#text=${"x".repeat(9_000)}`).text.length, 500);
});

test("an address can be read by people: slashes, commas and = stay, a space is +", () => {
  const state = { ...EMPTY, stat: ["p50", "p99"], chart: "lab/e1/publish/qos=1/publish latency", changed: true };
  assert.equal(writeState(state), "#stat=p50,p99&changed=1&chart=lab/e1/publish/qos=1/publish+latency");
  assert.equal(writeState(EMPTY), "");
});

test("whatever is written is read again as it was", () => {
  const next = random(7);
  const signs = [..."aZ0 +&=#%/?,:;<>\"'äµ→\u{1f600}\n"];
  for (let round = 0; round < 200; round++) {
    const text = () => Array.from({ length: Math.floor(next() * 12) }, () => signs[Math.floor(next() * signs.length)]).join("");
    const state = {
      ...EMPTY, text: text(), board: text(), chart: text(), event: next() < 0.5 ? null : Math.floor(next() * 20), changed: next() < 0.5,
      from: next() < 0.5 ? "" : "2026-03-04", theme: "dark", stat: next() < 0.5 ? [] : ["p95", "max"],
    };
    assert.deepEqual(readState(writeState(state)), state);
  }
});

test("the key of a case with many parameters is read whole", () => {
  const chart = `a-rack-with-a-long-name/board-with-a-long-name/delivery/${"parameter=10000,".repeat(40)}/delivery latency`;
  assert.equal(readState(writeState({ ...EMPTY, chart })).chart, chart);
});

test("half a surrogate pair is no error", () => {
  assert.equal(readState(writeState({ ...EMPTY, text: "\ud800" })).text, "\ufffd");
});

test("a filter leaves charts out; an open chart, a theme and a range of dates do not", () => {
  const filters = [{ text: "tls" }, { board: "e1" }, { stat: ["p99"] }, { event: 0 }, { changed: true }, { broken: true }];
  for (const change of filters) assert.equal(isFiltered({ ...EMPTY, ...change }), true, JSON.stringify(change));
  for (const change of [{}, { chart: "x" }, { theme: "dark" }, { from: "2026-01-01" }, { all: true }]) {
    assert.equal(isFiltered({ ...EMPTY, ...change }), false, JSON.stringify(change));
  }
});
