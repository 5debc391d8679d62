// SPDX-License-Identifier: Apache-2.0
/** A modal dialog: the browser keeps the focus in it, and closes it with Escape. */
import { html } from "htm/preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** @param {{name: string, title: any, children?: any, onClose: () => void}} props  name: its class, and the start of its ids */
export function Dialog({ name, title, children, onClose }) {
  const dialog = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    const [own, before] = [dialog.current, /** @type {HTMLElement|null} */ (document.activeElement)];
    own.showModal();
    return () => { own.close(); before?.focus(); };
  }, []);
  return html`<dialog class=${name} aria-labelledby=${`${name}-title`} ref=${dialog} onCancel=${(event) => { event.preventDefault(); onClose(); }}
      onClick=${(event) => event.target === dialog.current && onClose()}>
    <header><h2 id=${`${name}-title`}>${title}</h2><button type="button" class="close" aria-label="Close" onClick=${onClose}>✕</button></header>
    ${children}
  </dialog>`;
}

const KEYS = [
  ["/", "filter"], ["j", "next chart"], ["k", "previous chart"], ["Enter", "open the chart; in the filter: go to the first one"],
  ["Esc", "close, back to where you were"], ["← →", "in a chart: from run to run"], ["?", "these keys"],
];

/** Which keys there are. */
export const Help = ({ onClose }) => html`<${Dialog} name="help" title="Keys" onClose=${onClose}>
  <dl>${KEYS.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl><//>`;
