// SPDX-License-Identifier: Apache-2.0
/**
 * What is filtered, open and chosen, as the address has it: #board=e1&stat=p99&event=3&chart=lab/e1/….
 *
 * An address may come from anywhere: an unknown key or value is left out.
 */
import { STATISTICS } from "./model.js";

/** "auto" follows the system. */
export const THEMES = ["auto", "light", "dark"];
const LONGEST = 500; // characters of a value
const LONGEST_CHART = 4_000; // a chart's key holds every parameter of its case: those of `delivery` alone are 450
const MOST_EVENTS = 1e6;
const TEXTS = ["text", "product", "board", "rack", "kind", "target", "bench"];
const FLAGS = ["changed", "broken", "all"];

/** @type {State} */
export const EMPTY = Object.freeze({
  text: "", product: "", board: "", rack: "", kind: "", target: "", bench: "", stat: [], changed: false, broken: false, from: "", to: "",
  event: null, all: false, chart: "", theme: "auto",
});

/** How each key is read: the value, or undefined where it is none. */
const READERS = {
  ...Object.fromEntries(TEXTS.map((key) => [key, (value) => value.slice(0, LONGEST)])),
  ...Object.fromEntries(FLAGS.map((key) => [key, (value) => value === "1"])),
  chart: (value) => value.slice(0, LONGEST_CHART),
  stat: (value) => STATISTICS.filter((stat) => stat && value.split(",").includes(stat)),
  from: date,
  to: date,
  event: (value) => (/^\d+$/.test(value) && Number(value) < MOST_EVENTS ? Number(value) : undefined),
  theme: (value) => THEMES.find((theme) => theme === value),
};

/** @param {string} hash  with or without "#" @returns {State} */
export function readState(hash) {
  /** @type {Record<string, any>} */
  const state = { ...EMPTY };
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (Object.hasOwn(READERS, key)) state[key] = READERS[key](value) ?? EMPTY[key];
  }
  return /** @type {State} */ (state);
}

/** The address part of a state, without what is as at first: "" or "#…". */
export function writeState(/** @type {State} */ state) {
  const parts = Object.keys(EMPTY).filter((key) => String(state[key] ?? "") !== String(EMPTY[key] ?? ""))
    .map((key) => `${key}=${readable(state[key] === true ? "1" : String(state[key]))}`);
  return parts.length ? `#${parts.join("&")}` : "";
}

/** Whether the state leaves charts out. */
export const isFiltered = (/** @type {State} */ state) =>
  [...TEXTS, "changed", "broken"].some((key) => state[key]) || state.stat.length > 0 || state.event !== null;

/** Encode only what must be: slashes, commas, colons and "=" stay as they are, a space becomes "+". */
function readable(text) {
  return encodeURIComponent(text.toWellFormed()).replace(/%20/g, "+").replace(/%(2F|2C|3A|3D|40)/g, decodeURIComponent);
}

function date(value) {
  const moment = /^\d{4}-\d\d-\d\d$/.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(moment) || new Date(moment).toISOString().slice(0, 10) !== value ? undefined : value;
}
