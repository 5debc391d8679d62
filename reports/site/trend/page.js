// SPDX-License-Identifier: Apache-2.0
/** The trend page: one HTML file that carries its data, style and script, and asks for nothing else. */
import { createHash } from "node:crypto";

import { escape } from "./html.js";

/**
 * @param {TrendFile & {details?: Record<string, any>}} data  trend.json
 * @param {{script: string, style: string}} parts
 * @returns {string}
 */
export function renderPage({ details = {}, ...data }, { script, style }) {
  const policy = `default-src 'none'; script-src '${hash(script)}'; style-src '${hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'`;
  const title = escape(`Trend · ${data.title}`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<noscript>${withoutScript(title, data)}</noscript>
<script type="application/json" id="trend">${embedded(data)}</script>
<script type="application/json" id="details">${embedded(details)}</script>
<script>${script}</script>
</body>
</html>
`;
}

/** JSON that cannot end the element it stands in. */
const embedded = (data) => JSON.stringify(data).replace(/</g, "\\u003c");

/** What is said where no script runs: what happened, in words. */
function withoutScript(title, { events, remark }) {
  const lines = events.map(({ headline, night }) => `<li>${escape(`${night}: ${headline}`)}</li>`).join("");
  const changed = lines ? `<h2>What changed</h2><ul>${lines}</ul>` : "<p>No change point.</p>";
  return `<h1>${title}</h1>${remark ? `<p class="remark">${escape(remark)}</p>` : ""}${changed}<p>The charts need JavaScript.</p>`;
}

const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
