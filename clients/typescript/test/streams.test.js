import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, ConnectionFailedError, ModelFailedError, readEvents } from "../dist/index.js";
import { all, frame, ID, problem, RESULT, stream, world } from "./world.js";

const CREATED = frame("message.created", { message_id: ID, seq: 1, role: "user" }, 5);
const COMPLETED = frame("reply.completed", RESULT, 9);
const delta = (text) => frame("reply.delta", { text });
const event = (number, type = "message.created") => frame(type, { id: `${number}`, type, data: {} }, number);
const told = (events) => events.map((one) => (one.type === "reply.delta" ? one.data.text : one.type));

for (const size of [1, 2, 3, 7, 1000]) {
  test(`events come out of pieces of ${size} bytes`, async () => {
    const whole = new TextEncoder().encode(
      `: ping\n\nretry: 2000\n\n${CREATED}${delta("Привет ")}${delta("🌊").replaceAll("\n", "\r\n")}${COMPLETED}`,
    );
    const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
      whole.slice(at * size, (at + 1) * size),
    );
    const { client, seen } = world([stream(pieces)]);
    const events = await all(client.chatStream(ID, "hi"));
    assert.deepEqual(told(events), ["message.created", "Привет ", "🌊", "reply.completed"]);
    assert.deepEqual(
      events.map((one) => one.id),
      [5, undefined, undefined, 9],
    );
    assert.equal(events.at(-1).data.reply.content, "Hello there");
    assert.equal(seen[0].request.headers.get("accept"), "text/event-stream");
  });
}

test("a broken reply is asked for again under its key, and no word comes twice", async () => {
  const { client, seen, keys } = world([
    stream([CREATED, delta("Hel")], { breaks: true }),
    problem(409, "idempotency_in_progress", {}, { "Retry-After": "1" }),
    stream([CREATED, delta("Hello there"), COMPLETED]),
  ]);
  assert.deepEqual(told(await all(client.chatStream(ID, "hi"))), [
    "message.created",
    "Hel",
    "lo there",
    "reply.completed",
  ]);
  assert.deepEqual([seen.length, keys().size], [3, 1]);
  assert.deepEqual(new Set(seen.map((one) => one.body)), new Set(['{"content":"hi"}']));
});

test("every message of a turn comes once, with or without a number", async () => {
  const ids = ["1", "2", "3"].map((digit) => ID.replace("1", digit));
  const live = ids.map((id, at) => frame("message.created", { message_id: id }, at + 5));
  const [begun, waited] = ids.map((id) => frame("compaction.started", { compaction_id: id }));
  const { client } = world([
    stream([...live, begun], { breaks: true }),
    stream([...live, begun, waited], { breaks: true }),
    stream([frame("message.created", { message_id: ids[2] }), COMPLETED]),
  ]);
  const events = await all(client.chatStream(ID, "hi"));
  assert.deepEqual(
    events.slice(0, -1).map((event) => event.data.message_id ?? event.data.compaction_id),
    [...ids, ids[0], ids[1]],
  );
});

test("no thought and no recalled passage comes twice", async () => {
  const [recalled, more] = [[3], [3, 4]].map((seqs) => frame("context.recalled", { seqs }));
  const [first, again, rest] = ["They ", "They ask.", " Kindly."].map((text) => frame("reasoning.delta", { text }));
  const { client } = world([
    stream([CREATED, recalled, first], { breaks: true }),
    stream([CREATED, recalled, again, rest, more, delta("Hello there"), COMPLETED]),
  ]);
  const events = await all(client.chatStream(ID, "hi"));
  const of = (type) => events.filter((event) => event.type === type).map((event) => event.data);
  assert.deepEqual(of("reasoning.delta"), [{ text: "They " }, { text: "ask." }, { text: " Kindly." }]);
  assert.deepEqual(of("context.recalled"), [{ seqs: [3] }, { seqs: [3, 4] }]);
  assert.deepEqual(of("reply.delta"), [{ text: "Hello there" }]);
});

test("a reply that was made anew comes whole", async () => {
  const { client } = world([
    stream([CREATED, delta("Good day")]),
    stream([delta("Hello "), delta("there"), COMPLETED]),
  ]);
  assert.deepEqual(told(await all(client.chatStream(ID, "hi"))), ["message.created", "Good day", "reply.completed"]);
});

test("every open call is told once", async () => {
  const [one, other] = ["a", "b"].map((id) => frame("tool.called", { id, name: "weather", arguments: {} }));
  const { client } = world([stream([CREATED, one], { breaks: true }), stream([CREATED, one, other, COMPLETED])]);
  const calls = (await all(client.chatStream(ID, "hi"))).filter((event) => event.type === "tool.called");
  assert.deepEqual(
    calls.map((call) => call.data.id),
    ["a", "b"],
  );
});

test("a turn that fails is thrown, after words at once", async () => {
  const failed = frame("reply.failed", { status: 502, code: "model_failed", retryable: true, message_id: ID }, 7);
  const passing = frame("reply.failed", { status: 503, code: "model_unavailable", retryable: true }, 7);
  await assert.rejects(
    all(world([stream([CREATED, failed])]).client.chatStream(ID, "hi")),
    (error) => error instanceof ModelFailedError && error.problem.message_id === ID,
  );
  await assert.rejects(all(world([stream([CREATED, delta("H"), passing])]).client.chatStream(ID, "hi")), {
    code: "model_unavailable",
  });
  const { client } = world([stream([CREATED, passing]), stream([CREATED, delta("Hello there"), COMPLETED])]);
  assert.deepEqual(told(await all(client.chatStream(ID, "hi"))), ["message.created", "Hello there", "reply.completed"]);
});

test("a stream that never comes back ends with the failure", async () => {
  const answers = Array.from({ length: 9 }, () => stream([CREATED], { breaks: true }));
  const { client, seen } = world(answers);
  await assert.rejects(all(client.chatStream(ID, "hi")), ConnectionFailedError);
  assert.equal(seen.length, 5);
});

test("a page that is no stream is tried again", async () => {
  const page = new Response("<p>hello</p>", { headers: { "Content-Type": "text/html" } });
  const { client } = world([page, stream([CREATED, COMPLETED])]);
  assert.deepEqual(told(await all(client.chatStream(ID, "hi"))), ["message.created", "reply.completed"]);
});

test("events go on after the last one that was given", async () => {
  const { client, seen } = world([
    stream([event(4), event(5)], { breaks: true }),
    problem(503, "dependency_unavailable"),
    stream([event(6)]),
  ]);
  const numbers = [];
  for await (const one of client.events(ID, { after: 3 })) {
    numbers.push(one.id);
    if (one.id === "6") break;
  }
  assert.deepEqual(numbers, ["4", "5", "6"]);
  assert.deepEqual(
    seen.map((one) => one.request.headers.get("last-event-id")),
    ["3", "5", "5"],
  );
});

test("events of a silent conversation go on, however often a stream ends", async () => {
  const silent = Array.from({ length: 12 }, (_, at) => stream(["retry: 2000\n\n: ping\n\n"], { breaks: at % 2 === 0 }));
  const { client } = world([...silent, stream([event(4)])]);
  for await (const one of client.events(ID)) {
    assert.equal(one.id, "4");
    break;
  }
  const { client: other } = world(Array.from({ length: 9 }, () => stream([])));
  await assert.rejects(all(other.events(ID)), ConnectionFailedError); // control: no stream begins
});

test("a stream that is left closes its connection", async () => {
  let isCancelled = false;
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(event(1))),
    cancel: () => void (isCancelled = true),
  });
  const { client } = world([new Response(body, { headers: { "Content-Type": "text/event-stream" } })]);
  for await (const _ of client.events(ID)) break;
  assert.ok(isCancelled);
});

test("silence is a broken connection; an abort ends a stream with its reason", async () => {
  const silent = () => new Response(new ReadableStream({}), { headers: { "Content-Type": "text/event-stream" } });
  const { client, seen } = world([silent(), stream([CREATED, COMPLETED])], { timeout: 250 });
  assert.equal((await all(client.chatStream(ID, "hi"))).length, 2);
  assert.equal(seen.length, 2);
  const ending = new AbortController();
  const open = (_, init) => {
    const body = new ReadableStream({
      start: (controller) => init.signal.addEventListener("abort", () => controller.error(init.signal.reason)),
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  };
  setTimeout(() => ending.abort("enough"), 5);
  await assert.rejects(
    all(world([open]).client.events(ID, { signal: ending.signal })),
    (thrown) => thrown === "enough",
  );
});

test("a turn of others is followed to its end; where none runs there is nothing", async () => {
  const failed = frame("reply.failed", { status: 503, code: "model_unavailable", retryable: true });
  assert.deepEqual(told(await all(world([stream([CREATED, delta("Hi"), COMPLETED])]).client.followTurn(ID))), [
    "message.created",
    "Hi",
    "reply.completed",
  ]);
  assert.deepEqual(await all(world([new Response(null, { status: 204 })]).client.followTurn(ID)), []);
  assert.deepEqual(
    told(
      await all(
        world([stream([CREATED], { breaks: true }), new Response(null, { status: 204 })]).client.followTurn(ID),
      ),
    ),
    ["message.created"],
  );
  await assert.rejects(all(world([stream([CREATED, failed])]).client.followTurn(ID)), ApiError);
});

test("one event may not grow without end", async () => {
  const response = stream(["data: ", ...Array.from({ length: 5 }, () => "x".repeat(100))]);
  await assert.rejects(all(readEvents(response, { timeout: 1000, limit: 300 })), ConnectionFailedError);
});
