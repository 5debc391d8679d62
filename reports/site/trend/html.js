// SPDX-License-Identifier: Apache-2.0
/** Names and addresses come from outside: what may stand in markup, and what may be linked to. */

/** Text that is safe in HTML and SVG, as content and in quoted attributes. */
export const escape = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** An address that may be linked to: http or https; anything else is "". */
export const safeLink = (address) => (/^https?:\/\//.test(address ?? "") ? address : "");

/** Where a run's commit is to be seen, or "". */
export function commitLink({ url, commit }) {
  const [repository, rest] = (url ?? "").split("/actions/runs/");
  return rest && commit ? safeLink(`${repository}/commit/${encodeURIComponent(commit)}`) : "";
}

/** An address that may be linked to: http, https or a place within the report; anything else is "". */
export function placeLink(/** @type {string} */ address) {
  if (safeLink(address)) return address;
  return /^(?!\/\/)[^:\\/?#]*(?:[\/?#][^\\]*)?$/.test(address) && !/[\u0000-\u0020]/.test(address) ? address : "";
}
