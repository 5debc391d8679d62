/** Text that is safe in HTML and SVG, as content and in quoted attributes. */
export const escape = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** An address that may be linked to: http or https; anything else is "". */
export const safeLink = (address) => (/^https?:\/\//.test(address ?? "") ? address : "");

/** `content` linked to `address` where there is one. */
export function linked(address, content) {
  const target = safeLink(address);
  return target ? `<a href="${escape(target)}">${content}</a>` : content;
}

/** How a run is named on an axis: its short commit, "+" where the sources had changes; else its time. */
export function runName({ commit, dirty, started_utc: started }) {
  return commit ? `${commit.slice(0, 7)}${dirty ? "+" : ""}` : started.slice(11, 16);
}

/** Where a run's commit is to be seen, or "". */
export function commitLink({ url, commit }) {
  const [repository, rest] = (url ?? "").split("/actions/runs/");
  return rest && commit ? `${repository}/commit/${commit}` : "";
}
