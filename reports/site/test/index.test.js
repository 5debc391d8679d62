// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";

import TrendPlugin from "../trend/index.js";
import { smallTrend } from "./sample.js";

const LARGEST_SCRIPT_BYTES = 150_000;
const EVIL = '</script><script>alert(1)</script><!--';

/** The plugin's page, made as Allure makes it. */
async function made(data) {
  const folder = await mkdtemp(join(tmpdir(), "trend-"));
  try {
    await writeFile(join(folder, "trend.json"), JSON.stringify(data));
    const files = new Map();
    const reportFiles = { addFile: async (name, content) => files.set(name, new TextDecoder().decode(content)) };
    await new TrendPlugin({ data: join(folder, "trend.json") }).done({ reportFiles });
    assert.deepEqual([...files.keys()], ["index.html"]);
    return files.get("index.html");
  } finally {
    await rm(folder, { recursive: true });
  }
}

let page = "";
before(async () => {
  const data = smallTrend();
  data.title = EVIL;
  data.events[0].headline = EVIL;
  page = await made(data);
});

const inside = (tag) => [...page.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))].map(([, text]) => text);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

test("the policy allows the page's own script and style by their hashes, and nothing else", () => {
  const [, policy] = page.match(/Content-Security-Policy" content="([^"]+)"/);
  const [[script], [style]] = [inside("script"), inside("style")];
  assert.deepEqual(policy.split("; "), [
    "default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, "img-src data:", "base-uri 'none'", "form-action 'none'",
  ]);
});

test("data stays data, whatever is in it", () => {
  assert.equal(inside("script").length, 1);
  const [, text] = page.match(/id="trend">(.*?)<\/script>/s);
  assert.doesNotMatch(text, /</);
  assert.equal(JSON.parse(text).events[0].headline, EVIL);
  assert.equal(JSON.parse(text).details, undefined);
});

test("details are apart, so that they are read only when somebody asks", () => {
  const [, text] = page.match(/id="details">(.*?)<\/script>/s);
  assert.ok(JSON.parse(text)["lab/e1/publish/qos=1/publish latency"].distribution);
});

test("where no script runs, what happened is read in plain words", () => {
  const [words] = inside("noscript");
  assert.equal(words.match(/<li>/g).length, smallTrend().events.length);
  assert.match(words, /<li>2026-11-11: &#60;\/script/);
});

test("the script is small and asks for nothing", () => {
  const [script] = inside("script");
  assert.ok(script.length < LARGEST_SCRIPT_BYTES, `${script.length} bytes`);
  assert.doesNotMatch(script, /\bfetch\(|XMLHttpRequest|\bimport\(|sendBeacon|WebSocket|\beval\(|new Function/);
  assert.doesNotMatch(page, /<(link|img|iframe)[^>]*(src|href)="(?!data:)/);
});
