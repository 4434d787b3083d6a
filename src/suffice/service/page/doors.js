// The service, as the page asks it: one envelope, the key where one is wanted, and journeys as they go.

import { byId } from "./make.js";

const KEPT = "suffice-key";

export class Refused extends Error {
  constructor(status, told) {
    super(told.message);
    this.status = status;
    this.code = told.code;
    this.hint = told.hint;
  }
}

const gone = () =>
  new Refused(0, { code: "unreachable", message: "The service cannot be reached.", hint: "Is it still running? Then try again." });

export const get = (path, signal) => asked(path, { signal });
export const post = (path, body, signal) => asked(path, sending(body, signal));

const sending = (body, signal) => ({
  method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal,
});

async function asked(path, how) {
  const said = await admitted(path, how);
  return opened(said.status, await said.json().catch(() => null));
}

function opened(status, envelope) {
  if (envelope?.ok) return envelope.data;
  throw new Refused(status, envelope?.error ?? { code: "odd", message: `The service answered with status ${status}.`, hint: "" });
}

/** A reply; where a key is wanted, the reader is asked for it once and the request is made again. */
async function admitted(path, how) {
  const said = await sent(path, how);
  if (said.status !== 401 || !(await askForKey((await said.clone().json()).error.message))) return said;
  return sent(path, how);
}

async function sent(path, how) {
  const key = sessionStorage.getItem(KEPT);
  const headers = { ...how.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  try {
    return await fetch(path, { ...how, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw gone();
  }
}

let asking = null; // one question for the key at a time, however many requests want it

function askForKey(why) {
  asking ??= new Promise((done) => {
    const dialog = byId("key-dialog");
    byId("key-why").textContent = `${why[0].toUpperCase()}${why.slice(1)}.`;
    byId("key").value = "";
    dialog.addEventListener("close", () => {
      const key = byId("key").value.trim();
      const given = dialog.returnValue === "use" && /^[\x21-\x7e]+$/.test(key);
      if (given) sessionStorage.setItem(KEPT, key);
      asking = null;
      done(given);
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}

/** Each event of a journey: {name, data}. The last is `end` or `error`; its envelope is opened. */
export async function* journey(question, gate, signal) {
  const how = sending({ question, gate }, signal);
  how.headers.accept = "text/event-stream";
  const said = await admitted("v1/ask", how);
  if (!said.ok) opened(said.status, await said.json().catch(() => null));
  let ended = false;
  for await (const block of blocks(said.body)) {
    const fields = Object.fromEntries(block.split("\n").filter((line) => !line.startsWith(":")).map(parted));
    if (!fields.event) continue;
    const data = JSON.parse(fields.data);
    ended = fields.event === "end" || fields.event === "error";
    yield { name: fields.event, data: ended ? opened(said.status, data) : data };
  }
  if (!ended) throw gone();
}

const parted = (line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)];

async function* blocks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        throw error.name === "AbortError" ? error : gone();
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

/** Documents by id, those that there are; a hundred a request. */
export async function documents(ids, signal) {
  const found = new Map();
  for (let at = 0; at < ids.length; at += 100) {
    const some = ids.slice(at, at + 100);
    const query = some.map((id) => `id=${encodeURIComponent(id)}`).join("&");
    for (const one of await get(`v1/library/documents?${query}`, signal)) if (one) found.set(one.doc_id, one);
  }
  return found;
}
