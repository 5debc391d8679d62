// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { actionOf } from "../trend/keyboard.js";

const press = (key, more = {}) => actionOf({ key, target: { tagName: "BODY" }, ...more });

test("each key has one meaning", () => {
  assert.deepEqual(["/", "j", "k", "?"].map((key) => press(key)), ["filter", "next", "previous", "help"]);
  for (const key of ["x", "Enter", " ", "Tab", "Escape", "toString"]) assert.equal(press(key), "", key);
});

test("keys with Ctrl, Alt or Meta are the browser's", () => {
  for (const held of ["ctrlKey", "altKey", "metaKey"]) assert.equal(press("k", { [held]: true }), "", held);
});

test("who types into a field types letters", () => {
  for (const tagName of ["INPUT", "SELECT", "TEXTAREA"]) assert.equal(press("j", { target: { tagName } }), "");
});

test("over a dialog no key of the page is left", () => {
  assert.deepEqual(["/", "j", "?"].map((key) => actionOf({ key, target: null }, true)), ["", "", ""]);
});

test("Enter leads from the text filter to the charts, and is the browser's anywhere else", () => {
  const enter = (target, covered = false) => actionOf({ key: "Enter", target }, covered);
  assert.equal(enter({ tagName: "INPUT", id: "filter-text" }), "next");
  assert.deepEqual([enter({ tagName: "BUTTON", id: "" }), enter({ tagName: "INPUT", id: "filter-text" }, true)], ["", ""]);
});
