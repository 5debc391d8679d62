// SPDX-License-Identifier: Apache-2.0
/** Keys of the whole page. Enter and Space are the browser's own, on whatever has the focus. */
import { FIELD } from "./filters.js";

/** @typedef {"filter"|"next"|"previous"|"help"|"close"|""} Action */

/** @type {Record<string, Action>} */
const ACTIONS = { "/": "filter", j: "next", k: "previous", "?": "help", Escape: "close" };
const TYPING = new Set(["INPUT", "SELECT", "TEXTAREA"]);

/**
 * What a key asks for; "" where it belongs to the browser, or to a field that is typed in.
 *
 * @param {{key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, target?: any}} event
 * @param {boolean} covered  a dialog is open: only closing it is left
 * @returns {Action}
 */
export function actionOf({ key, ctrlKey, metaKey, altKey, target }, covered = false) {
  if (ctrlKey || metaKey || altKey) return "";
  if (key === "Enter" && target?.id === FIELD && !covered) return "next"; // from the filter to what it found
  if (!Object.hasOwn(ACTIONS, key)) return "";
  const action = ACTIONS[key];
  if (action === "close") return action;
  return covered || TYPING.has(target?.tagName) ? "" : action;
}

/** Put the focus into the text filter. */
export function focusFilter() {
  const field = /** @type {HTMLInputElement|null} */ (document.getElementById(FIELD));
  field?.focus();
  field?.select();
}

/**
 * Put the focus on the chart `step` further on; the first one where none has it.
 *
 * @param {number} step  1 or -1
 */
export function focusChart(step) {
  const charts = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("button[data-chart]")]);
  const now = charts.findIndex((chart) => chart.closest("figure")?.contains(document.activeElement));
  const next = charts[now < 0 ? 0 : Math.min(charts.length - 1, Math.max(0, now + step))];
  next?.focus({ preventScroll: true });
  next?.closest("figure")?.scrollIntoView({ block: "nearest" });
}

/**
 * Give the focus back: to `before` where it is still there, else to the chart's own button.
 *
 * @param {Element|null} before
 * @param {string} key  of the chart
 */
export function giveBack(before, key) {
  const buttons = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("button[data-chart]")]);
  const kept = before?.isConnected && before !== document.body ? /** @type {HTMLElement} */ (before) : undefined;
  (kept ?? buttons.find(({ dataset }) => dataset.chart === key) ?? document.getElementById(FIELD))?.focus();
}
