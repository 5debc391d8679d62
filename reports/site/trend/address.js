// SPDX-License-Identifier: Apache-2.0
/** The state of the page, kept in its address: the back button goes back, and a link is shared as it is. */
import { useEffect, useRef, useState } from "preact/hooks";

import { readState, writeState } from "./state.js";

/**
 * The state, and what changes it. A step to go back to is made of each change but those that say `replace`
 * (typing).
 *
 * @returns {[State, (changes: Partial<State>, options?: {replace?: boolean}) => void]}
 */
export function useAddress() {
  const [state, setState] = useState(() => readState(location.hash));
  const latest = useRef(state);
  const become = (/** @type {State} */ next) => {
    latest.current = next;
    setState(next);
  };
  useEffect(() => {
    const read = () => become(readState(location.hash));
    addEventListener("popstate", read);
    addEventListener("hashchange", read);
    return () => {
      removeEventListener("popstate", read);
      removeEventListener("hashchange", read);
    };
  }, []);
  const update = (/** @type {Partial<State>} */ changes, { replace = false } = {}) => {
    const next = { ...latest.current, ...changes };
    const address = writeState(next) || "#";
    if (address !== (location.hash || "#")) history[replace ? "replaceState" : "pushState"](null, "", address);
    become(next);
  };
  return [state, update];
}
