// SPDX-License-Identifier: Apache-2.0
/** What was seen on the wire: how often which symptom, and how to find it in the capture. */
import { html } from "htm/preact";

/** @param {{detail: import("./details.js").Detail}} props */
export function WireView({ detail: { wire, wire_note: note } }) {
  if (!wire.length) return html`<p class="soft">${note || "Nothing was captured in this run."}</p>`;
  return html`<div class="wire"><div class="scroll" role="region" tabindex="0" aria-label="Symptoms"><table>
    <caption class="unseen">Symptoms on the wire</caption>
    <thead><tr><th scope="col">symptom</th><th scope="col" class="n">count</th><th scope="col">display filter</th></tr></thead>
    <tbody>${wire.map(({ symptom, count, filter }) => html`<tr class=${count ? "" : "none"}><td>${symptom.replaceAll("_", " ")}</td>
      <td class="n">${count.toLocaleString("en-GB")}</td><td><code>${filter}</code></td></tr>`)}</tbody>
  </table></div>${note && html`<p class="soft">${note}</p>`}</div>`;
}
