import assert from "node:assert/strict";
import { test } from "node:test";
import { ContextCompressor } from "../dist/index.js";
import { answer, ID, world } from "./world.js";

const page = (content, next_cursor = null) =>
  answer(200, {
    segment_id: "auth",
    from_seq: 1,
    started_at: null,
    content,
    messages: [content],
    token_count: 2,
    next_cursor,
  });

test("the engine's interface by its published names", async () => {
  const { client, seen } = world([page("brief"), page("a", "two"), page("b"), answer(200, { gauge: {} })]);
  const compressor = new ContextCompressor(client, ID);
  assert.equal((await compressor.compress([1, 3], 2)).content, "brief");
  const whole = await compressor.expand("auth", "detailed");
  assert.deepEqual([whole.content, whole.messages, whole.token_count, whole.next_cursor], ["ab", ["a", "b"], 4, null]);
  await compressor.assembleContext(ID, 700, { query: "sea" });
  assert.deepEqual(JSON.parse(seen[0].body), { from_seq: 1, to_seq: 3, level: "brief" });
  assert.deepEqual(new URL(seen[2].request.url).search, "?level=detailed&after=two");
  assert.deepEqual(JSON.parse(seen[3].body), { query: "sea", budget: 700 });
  await assert.rejects(compressor.expand("auth", 4), RangeError);
});

test("statistics of all conversations, from a time on", async () => {
  const { client, seen } = world([answer(200, {}), answer(200, {})]);
  await client.stats(undefined, { since: "2026-11-01T12:00:00Z" });
  await client.stats();
  const asked = seen.map((one) => new URL(one.request.url).search);
  assert.deepEqual(asked, ["?since=2026-11-01T12%3A00%3A00Z", ""]);
});
