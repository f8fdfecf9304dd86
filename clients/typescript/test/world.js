// A service that answers by script; waiting takes no time.

import { Throughline } from "../dist/index.js";

export const ID = "01a1f8c9-ff73-7019-ab1b-f77319df580e";
export const RESULT = { message: { id: ID }, reply: { content: "Hello there" }, status: "completed" };

/** Answers are responses, or errors that are thrown; what was asked and waited for is kept. */
export function world(answers, options = {}) {
  const seen = [];
  const pauses = [];
  const fetch = async (request, init) => {
    seen.push({ request, body: request.body ? await request.clone().text() : "", signal: init.signal });
    const answer = answers.shift();
    if (answer === undefined) throw new Error("nothing more is scripted");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer(request, init) : answer;
  };
  const sleep = async (milliseconds) => void pauses.push(milliseconds);
  const client = new Throughline("http://service.test", { fetch, sleep, ...options });
  return { client, seen, pauses, keys: () => new Set(seen.map((one) => one.request.headers.get("idempotency-key"))) };
}

export function answer(status, body, headers = {}) {
  const type = status < 400 ? "application/json" : "application/problem+json";
  return new Response(body === undefined ? null : JSON.stringify(body), {
    status,
    headers: { "Content-Type": type, ...headers },
  });
}

export function problem(status, code, { retryable = true, ...more } = {}, headers = {}) {
  return answer(status, { status, code, detail: "so it is", retryable, request_id: "r", ...more }, headers);
}

export function frame(type, data, id) {
  return `event: ${type}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** A stream of these pieces (bytes or texts), which may end with a broken connection. */
export function stream(pieces, { breaks = false } = {}) {
  const left = pieces.map((piece) => (typeof piece === "string" ? new TextEncoder().encode(piece) : piece));
  const body = new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) controller.enqueue(piece);
      else if (breaks) controller.error(new TypeError("cut"));
      else controller.close();
    },
  });
  return new Response(body, { status: 200, headers: { "Content-Type": "text/event-stream; charset=utf-8" } });
}

export async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}
