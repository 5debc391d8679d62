// SPDX-License-Identifier: Apache-2.0
/** The top of the page: ways to the other pages, what this one is about, and how it looks. */
import { html } from "htm/preact";

import { placeLink } from "./details.js";
import { scope, unreal, unrealSentence } from "./facts.js";
import { THEMES } from "./state.js";

const WAYS = { home: "← Verdict", tests: "Test report" };

/**
 * @param {{trend: import("./types.js").Trend, theme: string, update: (changes: {theme: string}) => void,
 * onHelp: () => void}} props
 */
export function Header({ trend, theme, update, onHelp }) {
  const { links, title, notes, dropped_runs: dropped } = trend;
  return html`<header>
    <div class="top"><nav aria-label="Report">${Object.entries(WAYS).map(([key, name]) => way(links[key], name))}</nav>
      <label>Theme <select value=${theme} onChange=${({ target }) => update({ theme: target.value })}>
        ${THEMES.map((name) => html`<option value=${name} selected=${name === theme}>${name}</option>`)}</select></label>
      <button type="button" class="plain" onClick=${onHelp} aria-haspopup="dialog" aria-keyshortcuts="?">Keys <kbd>?</kbd></button></div>
    <h1>Trend · ${title} ${unreal(trend).filter((word) => !title.includes(`${word} figures`)).map((word) => html`<span class="badge">${word}</span> `)}</h1>
    <p class="soft">${scope(trend)}${dropped > 0 && `; ${dropped} older runs are not drawn`}</p>
    ${unrealSentence(trend) && html`<p class="remark">${unrealSentence(trend)}</p>`}
    ${notes.map((note) => html`<p class="remark">${note}</p>`)}
  </header>`;
}

/** A link to another page of the report, or to the web; nothing for any other scheme. */
function way(address, name) {
  const place = address && placeLink(address);
  return place && html`<a href=${place}>${name}</a>`;
}
