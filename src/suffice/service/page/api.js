// Requests to the service: the envelope, the key if one is required, and /v1/ask as events.

import { byId } from "./dom.js";

const KEY_ITEM = "suffice-key";

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail.message);
    this.status = status;
    this.code = detail.code;
    this.hint = detail.hint;
  }
}

const unreachable = () =>
  new ApiError(0, { code: "unreachable", message: "The service cannot be reached.", hint: "Is it still running? Then try again." });

export const get = (path, signal) => request(path, { signal });
export const post = (path, body, signal) => request(path, postOptions(body, signal));

const postOptions = (body, signal) => ({
  method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal,
});

async function request(path, options) {
  const response = await fetchWithKey(path, options);
  return openEnvelope(response.status, await response.json().catch(() => null));
}

function openEnvelope(status, envelope) {
  if (envelope?.ok) return envelope.data;
  throw new ApiError(status, envelope?.error ?? { code: "odd", message: `The service answered with status ${status}.`, hint: "" });
}

/** A response; if a key is required, ask the user for it once and repeat the request. */
async function fetchWithKey(path, options) {
  const response = await send(path, options);
  if (response.status !== 401 || !(await askForKey((await response.clone().json()).error.message))) return response;
  return send(path, options);
}

async function send(path, options) {
  const key = sessionStorage.getItem(KEY_ITEM);
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  try {
    return await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
}

let asking = null; // one dialog at a time, however many requests need the key

function askForKey(why) {
  asking ??= new Promise((done) => {
    const dialog = byId("key-dialog");
    byId("key-why").textContent = `${why[0].toUpperCase()}${why.slice(1)}.`;
    byId("key").value = "";
    dialog.addEventListener("close", () => {
      const key = byId("key").value.trim();
      const given = dialog.returnValue === "use" && /^[\x21-\x7e]+$/.test(key);
      if (given) sessionStorage.setItem(KEY_ITEM, key);
      asking = null;
      done(given);
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}

/** The events of /v1/ask: {name, data}. The last is `end` or `error`; its envelope is opened. */
export async function* askEvents(question, gate, signal) {
  const options = postOptions({ question, gate }, signal);
  options.headers.accept = "text/event-stream";
  const response = await fetchWithKey("v1/ask", options);
  if (!response.ok) openEnvelope(response.status, await response.json().catch(() => null));
  let ended = false;
  for await (const block of blocks(response.body)) {
    const fields = Object.fromEntries(block.split("\n").filter((line) => !line.startsWith(":")).map(splitField));
    if (!fields.event) continue;
    const data = JSON.parse(fields.data);
    ended = fields.event === "end" || fields.event === "error";
    yield { name: fields.event, data: ended ? openEnvelope(response.status, data) : data };
  }
  if (!ended) throw unreachable();
}

const splitField = (line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)];

async function* blocks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        throw error.name === "AbortError" ? error : unreachable();
      });
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      yield* parts;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Documents by id, without unknown ones; a hundred per request. */
export async function documents(ids, signal) {
  const found = new Map();
  for (let at = 0; at < ids.length; at += 100) {
    const some = ids.slice(at, at + 100);
    const query = some.map((id) => `id=${encodeURIComponent(id)}`).join("&");
    for (const one of await get(`v1/library/documents?${query}`, signal)) if (one) found.set(one.doc_id, one);
  }
  return found;
}
