// SPDX-License-Identifier: Apache-2.0
/** Where the page begins in the browser: reads the data that it carries, and shows it. */
import { html, render } from "htm/preact";

import { readTrend } from "./model.js";
import { addressOfTest } from "./select.js";
import { App } from "./view.js";

const dataOf = (/** @type {string} */ id) => JSON.parse(document.getElementById(id)?.textContent ?? "{}");

performance.mark("trend-begin");
const trend = readTrend(dataOf("trend"), () => dataOf("details"));
performance.mark("trend-read");
const wanted = addressOfTest(trend, location.hash);
if (wanted) history.replaceState(null, "", wanted);
render(html`<${App} trend=${trend} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
performance.mark("trend-shown");
