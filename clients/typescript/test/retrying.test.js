import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConflictError,
  ConnectionFailedError,
  InvalidInputError,
  ModelFailedError,
  NotFoundError,
  RateLimitedError,
  Throughline,
  UnavailableError,
} from "../dist/index.js";
import { all, answer, ID, problem, world } from "./world.js";

const passing = {
  "a broken connection": () => new TypeError("fetch failed"),
  "too much for now": () => problem(429, "rate_limited"),
  "something away": () => problem(503, "dependency_unavailable"),
  "a proxy without the service": () => new Response("<html>a proxy's page", { status: 502 }),
  "the first request still running": () => problem(409, "idempotency_in_progress"),
};
for (const [what, made] of Object.entries(passing)) {
  test(`${what} is sent again under the same key`, async () => {
    const { client, seen, pauses, keys } = world([made(), made(), answer(201, { id: ID })]);
    assert.equal((await client.append(ID, { role: "user", content: "sea" })).id, ID);
    assert.equal(seen.length, 3);
    assert.equal(keys().size, 1);
    assert.deepEqual(
      seen.map((one) => JSON.parse(one.body).content),
      ["sea", "sea", "sea"],
    );
    assert.ok(pauses[0] >= 250 && pauses[0] <= 500 && pauses[1] >= 500 && pauses[1] <= 1000, `${pauses}`);
  });
}

const lasting = {
  "another conflict": [problem(409, "compaction_in_progress"), ConflictError],
  "input out of contract": [problem(422, "invalid_input", { retryable: false }), InvalidInputError],
  "a model that failed": [problem(502, "empty_reply"), ModelFailedError],
  "a 503 that does not pass": [problem(503, "request_timeout", { retryable: false }), UnavailableError],
  "a wait that is too long": [problem(429, "rate_limited", {}, { "Retry-After": "31" }), RateLimitedError],
};
for (const [what, [refusal, kind]] of Object.entries(lasting)) {
  test(`${what} is thrown at once`, async () => {
    const { client, seen } = world([refusal]);
    await assert.rejects(client.chat(ID, "hello"), kind);
    assert.equal(seen.length, 1);
  });
}

test("Retry-After is waited for", async () => {
  const { client, pauses } = world([
    problem(429, "rate_limited", {}, { "Retry-After": "7" }),
    answer(200, { tokens: 1 }),
  ]);
  await client.countTokens("a");
  assert.deepEqual(pauses, [7000]);
});

test("patience ends, and may be none", async () => {
  for (const attempts of [1, 3]) {
    const { client, seen } = world(
      Array.from({ length: 5 }, () => new TypeError("away")),
      { retrying: { attempts } },
    );
    await assert.rejects(
      client.usage(ID),
      (error) => error instanceof ConnectionFailedError && error.message === "away at http://service.test",
    );
    assert.equal(seen.length, attempts);
  }
});

test("a body that breaks off is asked for again", async () => {
  const cut = () => new Response(new ReadableStream({ start: (controller) => controller.error(new TypeError("cut")) }));
  const { client, seen } = world([cut(), answer(200, { tokens: 3 })]);
  assert.equal((await client.usage(ID)).tokens, 3);
  assert.equal(seen.length, 2);
});

test("an answer that does not come counts as a broken connection, and its request is given up", async () => {
  const never = () => new Promise(() => {});
  const { client, seen } = world([never, answer(200, { tokens: 3 })], { timeout: 250 });
  assert.equal((await client.usage(ID)).tokens, 3);
  assert.ok(seen[0].signal.aborted && !seen[1].signal.aborted);
});

test("a deletion whose answer was lost is done; control: one that was answered is not", async () => {
  const gone = () => problem(404, "not_found", { retryable: false });
  await world([new TypeError("cut"), gone()]).client.deleteConversation(ID);
  await assert.rejects(world([gone()]).client.deleteConversation(ID), NotFoundError);
});

test("every POST has a key of its own, or the one that is given", async () => {
  const { client, seen, keys } = world([1, 2, 3].map(() => answer(201, { id: ID })));
  await client.createConversation();
  await client.createConversation();
  await client.createConversation({}, { idempotencyKey: "mine" });
  assert.equal(keys().size, 3);
  assert.equal(seen[2].request.headers.get("idempotency-key"), "mine");
});

test("the plain operations have the same retries and keys", async () => {
  const { client, keys } = world([new TypeError("cut"), answer(200, { tokens: 1 })]);
  const { data } = await client.api.POST("/tokens/count", { body: { text: "a" } });
  assert.deepEqual([data.tokens, keys().size, [...keys()][0].length], [1, 1, 32]);
});

test("an abort ends the request and the waiting, with its own reason", async () => {
  const reason = new Error("the reader left");
  for (const at of ["request", "pause"]) {
    const ending = new AbortController();
    const hang = () => (
      setTimeout(() => ending.abort(reason), 5),
      new Promise((_, no) => ending.signal.addEventListener("abort", () => no(reason)))
    );
    const away = () => (setTimeout(() => ending.abort(reason), 5), Promise.reject(new TypeError("away")));
    const { client, seen } = world([at === "request" ? hang : away, answer(200, {})], { sleep: undefined });
    await assert.rejects(client.usage(ID, { signal: ending.signal }), (error) => error === reason);
    assert.equal(seen.length, 1);
  }
});

test("a problem is told whole; a proxy's page becomes its detail", async () => {
  const errors = [{ field: "budget", message: "must be positive" }];
  const { client } = world([
    problem(422, "invalid_input", { retryable: false, errors, minimum: 1 }),
    new Response("<h1>no</h1>", { status: 418 }),
    new Response('{"error": {"message": "no such route"}}', { status: 404 }),
  ]);
  await assert.rejects(client.context(ID, { budget: -1 }), (error) => {
    assert.ok(error instanceof InvalidInputError);
    assert.deepEqual(
      [error.status, error.code, error.requestId, error.problem.minimum],
      [422, "invalid_input", "r", 1],
    );
    assert.deepEqual(error.errors, errors);
    assert.equal(error.message, "422 invalid_input: so it is: budget: must be positive");
    return error.name === "InvalidInputError";
  });
  await assert.rejects(client.health(), (error) => error.code === "http_418" && error.detail === "<h1>no</h1>");
  await assert.rejects(client.health(), (error) => error.detail === '{"error": {"message": "no such route"}}');
});

test("an error of another service is told, whatever its form", async () => {
  for (const errors of [{ name: ["is wrong"] }, ["is wrong"], 5, null]) {
    const { client, seen } = world([answer(422, { detail: [{ msg: "no" }], errors })]);
    await assert.rejects(client.health(), (error) => {
      assert.ok(error instanceof InvalidInputError, `${error}`);
      return error.detail === '[{"msg":"no"}]' && error.errors.length === 0;
    });
    assert.equal(seen.length, 1);
  }
});

test("a pin that was removed without its message is not done", async () => {
  const { client } = world([new TypeError("away"), problem(404, "not_found", { retryable: false })]);
  await assert.rejects(client.unpinMessage(ID, ID), NotFoundError);
});

test("an id that would be a step up reaches nothing else", async () => {
  for (const step of [".", ".."]) {
    const { client, seen } = world([]);
    const acts = [
      () => client.eraseMessage(ID, step),
      () => client.removeFile(ID, step),
      () => client.segment(ID, step),
      () => client.compaction(step),
      () => client.eraseUser(step),
    ];
    for (const act of acts) await assert.rejects(async () => act(), { name: "TypeError", message: `"${step}" is no id` });
    assert.equal(seen.length, 0);
  }
});

test("lists are read page by page, and no further than one looks", async () => {
  const pages = () => [
    answer(200, { data: [{ seq: 1 }, { seq: 2 }], next_cursor: "two", has_more: true }),
    answer(200, { data: [{ seq: 3 }], next_cursor: null, has_more: false }),
  ];
  const { client, seen } = world(pages());
  assert.deepEqual(
    (await all(client.messages(ID, { pageSize: 2, order: "asc" }))).map((one) => one.seq),
    [1, 2, 3],
  );
  const urls = seen.map((one) => new URL(one.request.url));
  assert.deepEqual(
    urls.map((url) => url.search),
    ["?order=asc&limit=2", "?order=asc&limit=2&after=two"],
  );
  const other = world(pages());
  for await (const message of other.client.messages(ID)) if (message.seq === 2) break;
  assert.equal(other.seen.length, 1);
});

test("what is sent: key, language, version, path", async () => {
  const { client, seen } = world([answer(200, {})], { key: "secret", language: "ru" });
  await client.changeConversation("a/b", { title: null }, { ifMatch: 3 });
  const { request, body } = seen[0];
  const headers = ["authorization", "accept-language", "if-match", "content-type"].map((name) =>
    request.headers.get(name),
  );
  assert.deepEqual(headers, ["Bearer secret", "ru", '"3"', "application/json"]);
  assert.deepEqual(
    [new URL(request.url).pathname, request.method, body],
    ["/conversations/a%2Fb", "PATCH", '{"title":null}'],
  );
});

test("a failed connection says why, and at which address", async () => {
  const refused = () => new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:1") });
  const { client } = world([refused()], { retrying: { attempts: 1 } });
  await assert.rejects(client.health(), (error) => {
    assert.ok(error instanceof ConnectionFailedError);
    assert.match(error.message, /^fetch failed \(connect ECONNREFUSED 127\.0\.0\.1:1\) at http:\/\/\S+$/);
    return true;
  });
});

test("an address without its protocol is refused at once", () => {
  for (const url of ["localhost:8000", "127.0.0.1:8000", "ftp://localhost"]) {
    assert.throws(() => new Throughline(url), /is no address of a service, such as http:\/\/localhost:8000/);
  }
  for (const url of ["http://localhost:8000", "HTTPS://localhost", "/api", ""]) new Throughline(url);
});
