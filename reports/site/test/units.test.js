// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { digits, quantity, shownUnit } from "../trend/units.js";

test("a value is shown in the unit in which it is at least 1", () => {
  const cases = [
    ["us", 250, "250 µs"],
    ["us", 36_800, "36.8 ms"],
    ["us", 954_985, "955 ms"],
    ["us", 1_200_000, "1.2 s"],
    ["us", 0, "0 µs"],
    ["ratio", 0.0684, "6.84 %"],
    ["ratio", 0.0000684, "0.00684 %"],
    ["mbps", 30, "30 Mbit/s"],
    ["bytes", 182_272, "178 KiB"],
    ["count", 12_345, "12,345"],
    ["furlongs", 3, "3 furlongs"],
  ];
  for (const [unit, value, text] of cases) {
    assert.equal(quantity(value, unit), text);
  }
});

test("an axis has one unit: that of the largest value on it", () => {
  assert.equal(shownUnit("us", 1_200_000).symbol, "s");
  assert.equal(digits(25_000 * shownUnit("us", 1_200_000).factor), "0.025");
});

test("three digits say enough, and trailing zeros nothing; below 1 too", () => {
  const texts = { 7: "7", 7.1234: "7.12", 36.84: "36.8", 120.4: "120", 1234567: "1,234,567", "-0.5": "-0.5", 0.02512: "0.0251", 0.956: "0.956", 0.00001: "0.00001" };
  for (const [amount, text] of Object.entries(texts)) assert.equal(digits(Number(amount)), text);
});
