// SPDX-License-Identifier: Apache-2.0
/** Keys of the whole page. Enter and Space are the browser's own, on whatever has the focus; so is Escape in a dialog. */
import { FIELD } from "./filters.js";

/** @type {Record<string, string>} */
const ACTIONS = { "/": "filter", j: "next", k: "previous", "?": "help" };
const TYPING = new Set(["INPUT", "SELECT", "TEXTAREA"]);

/** What a key asks for; "" where it belongs to the browser, to a field that is typed in, or below an open dialog. */
export function actionOf({ key, ctrlKey = false, metaKey = false, altKey = false, target = /** @type {any} */ (null) }, covered = false) {
  if (ctrlKey || metaKey || altKey || covered) return "";
  if (key === "Enter" && target?.id === FIELD) return "next"; // from the filter to what it found
  return Object.hasOwn(ACTIONS, key) && !TYPING.has(target?.tagName) ? ACTIONS[key] : "";
}

/** Put the focus into the text filter. */
export function focusFilter() {
  const field = /** @type {HTMLInputElement|null} */ (document.getElementById(FIELD));
  field?.focus();
  field?.select();
}

const buttons = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll("button[data-chart]")]);

/** Put the focus on the chart `step` further on, 1 or -1; the first one where none has it. */
export function focusChart(/** @type {number} */ step) {
  const charts = buttons();
  const now = charts.findIndex((chart) => chart.closest("figure")?.contains(document.activeElement));
  const next = charts[now < 0 ? 0 : Math.min(charts.length - 1, Math.max(0, now + step))];
  next?.focus({ preventScroll: true });
  next?.closest("figure")?.scrollIntoView({ block: "nearest" });
}

/** Put the focus on the button of a chart that was closed, where the browser did not give it back. */
export function focusClosed(/** @type {string} */ key) {
  if (document.activeElement === document.body) (buttons().find(({ dataset }) => dataset.chart === key) ?? document.getElementById(FIELD))?.focus();
}
