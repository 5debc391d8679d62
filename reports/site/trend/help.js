// SPDX-License-Identifier: Apache-2.0
/** Which keys there are. */
import { html } from "htm/preact";
import { useEffect, useRef } from "preact/hooks";

const KEYS = [
  ["/", "filter"], ["j", "next chart"], ["k", "previous chart"], ["Enter", "open the chart; in the filter: go to the first one"], ["Esc", "close, back to where you were"],
  ["← →", "in a chart: from run to run"], ["?", "these keys"],
];

/** @param {{onClose: () => void}} props */
export function Help({ onClose }) {
  const close = useRef(/** @type {HTMLButtonElement|null} */ (null));
  useEffect(() => close.current?.focus(), []);
  return html`<div class="help" role="dialog" aria-modal="true" aria-labelledby="help-title">
    <h2 id="help-title">Keys</h2>
    <dl>${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <button type="button" ref=${close} onClick=${onClose}>Close</button>
  </div>`;
}
