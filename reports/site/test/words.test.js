// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";

import { signedPercent } from "../trend/words.js";

test("a change has a sign, and one decimal below ten per cent", () => {
  const cases = [[0.123, "+12 %"], [0.0994, "+9.9 %"], [0.0996, "+10 %"], [0.054, "+5.4 %"], [-0.05, "−5 %"], [0, "+0 %"], [null, ""], [Infinity, ""]];
  for (const [change, text] of cases) assert.equal(signedPercent(/** @type {number|null} */ (change)), text);
});
