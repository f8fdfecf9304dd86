// The official JavaScript SDK: `npm install openai@6` (7 wants Node 22), then `node javascript_sdk.mjs`.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.OPENAI_BASE_URL ?? "http://localhost:8000/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});

const completion = await client.chat.completions.create({
  model: "throughline",
  messages: [{ role: "user", content: "Hello!" }],
});
console.log("chat:", completion.choices[0].message.content);

const first = await client.responses.create({ model: "throughline", input: "My name is Ada." });
const second = await client.responses.create({
  model: "throughline",
  input: "What is my name?",
  previous_response_id: first.id,
});
assert.equal(second.conversation.id, first.conversation.id);
console.log("chain:", second.output_text);

let streamed = "";
const conversation = await client.conversations.create({});
for await (const event of await client.responses.create({
  model: "throughline",
  input: "I like tea.",
  conversation: conversation.id,
  stream: true,
})) {
  if (event.type === "response.output_text.delta") streamed += event.delta;
}
console.log("streamed:", streamed);
const items = await client.conversations.items.list(conversation.id, { order: "asc" });
assert.equal(items.data.at(-1).content[0].text, streamed);
