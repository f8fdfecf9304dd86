// Drives the AI SDK's own chat against a service, and reads every stream again by the SDK's own schema.
// `node ui_client.mjs`: SERVICE is the address of the service, GEMINI that of its scripted model, and CONVERSATIONS the
// ids of three conversations.
import { Chat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  asSchema,
  lastAssistantMessageIsCompleteWithToolCalls,
  parseJsonEventStream,
  readUIMessageStream,
  safeValidateUIMessages,
  uiMessageChunkSchema,
} from "ai";

const service = process.env.SERVICE;
const [talk, tools, ending] = process.env.CONVERSATIONS.split(",");
const recorded = [];
const bodies = [];

async function recording(url, options) {
  const response = await fetch(url, options);
  if (options?.body) bodies.push(JSON.parse(options.body));
  if (!response.body || !response.ok) return response;
  const [own, copy] = response.body.tee();
  recorded.push(new Response(copy).text().catch(() => ""));
  return new Response(own, { status: response.status, headers: response.headers });
}

const addressOf = (id) => `${service}/conversations/${id}`;
const lastOnly = ({ id, messages, trigger, messageId }) => ({
  body: { id, trigger, messageId, message: messages.at(-1) },
});

function chat(id, { transport = {}, ...options } = {}) {
  const api = `${addressOf(id)}/ui`;
  const prepareReconnectToStreamRequest = () => ({ api: `${api}/stream` });
  return new Chat({
    id,
    transport: new DefaultChatTransport({ api, fetch: recording, prepareReconnectToStreamRequest, ...transport }),
    ...options,
  });
}

const wordsOf = (message) => message.parts.filter((part) => part.type === "text").map((part) => part.text).join("|");
const typesOf = (message) => message.parts.map((part) => part.type);
const stored = async (id) => (await (await fetch(`${addressOf(id)}/messages?limit=100`)).json()).data;
const history = async (id) => (await (await fetch(`${addressOf(id)}/messages?format=ui&limit=100`)).json()).data;

async function until(condition) {
  for (let tries = 0; tries < 6000; tries += 1) {
    if (condition()) return;
    await new Promise((wake) => setTimeout(wake, 20));
  }
  throw new Error(`it never happens: ${condition}`);
}

// Until a reply that is sent for now has some words.
async function begun(one, send) {
  const count = one.messages.length;
  const sending = send();
  await until(() => one.messages.length === count + 2 && wordsOf(one.messages.at(-1)));
  return { sending };
}

const told = {};

// A plain page, unmodified: all its messages in each request.
const plain = chat(talk, { onData: (part) => (told.gauges = [...(told.gauges ?? []), part.data.tokens]) });
await plain.sendMessage({ text: "Hello." });
await plain.sendMessage({ text: "And again." });
told.plain = plain.messages.map((message) => [message.role, wordsOf(message)]);
told.sent = bodies.map((body) => body.messages.length);
told.seq = plain.messages.at(-1).metadata.seq;
const thoughtsOf = (message) => message.parts.filter((part) => part.type === "reasoning").map((part) => part.text);
told.thoughts = [...thoughtsOf(plain.messages.at(-1)), ...thoughtsOf((await history(talk)).at(-1))];

// The last reply once more, then a failure and what is done about it.
const before = plain.messages.at(-1).id;
await plain.regenerate();
told.regenerated = [wordsOf(plain.messages.at(-1)), plain.messages.at(-1).id !== before, plain.messages.length];
await plain.sendMessage({ text: "Fail." });
told.failed = [plain.status, JSON.parse(plain.error.message).code];
await plain.regenerate();
told.mended = [plain.status, wordsOf(plain.messages.at(-1)), plain.messages.length];
const lost = chat("0193e000-0000-7000-8000-000000000002");
await lost.sendMessage({ text: "Hello?" });
told.lost = JSON.parse(lost.error.message).code;

// A reload in the middle: a second client that has the first half already.
const first = chat(talk, { messages: await history(talk), transport: { prepareSendMessagesRequest: lastOnly } });
const running = await begun(first, () => first.sendMessage({ text: "Slowly, please." }));
const half = structuredClone(first.messages);
const second = chat(talk, { messages: half });
const fresh = chat(talk, { messages: await history(talk) });
const answered = recorded.length;
const resuming = [second.resumeStream(), fresh.resumeStream()];
await until(() => recorded.length === answered + 2);
await fetch(`${process.env.GEMINI}/release`, { method: "POST" });
await Promise.all([running.sending, ...resuming]);
told.resumed = [first, second, fresh].map((one) => [wordsOf(one.messages.at(-1)), one.messages.length]);
told.halfway = wordsOf(half.at(-1));
told.sameIds = new Set([first, second, fresh].map((one) => one.messages.at(-1).id)).size;
const idle = fresh.messages.length;
await fresh.resumeStream();
told.nothingRuns = [fresh.status, fresh.messages.length === idle];

// The same message twice, at once.
const pair = [chat(ending), chat(ending)];
await Promise.all(pair.map((one) => one.sendMessage({ id: "twice", role: "user", parts: [{ type: "text", text: "Twice." }] })));
told.twice = [pair.map((one) => wordsOf(one.messages.at(-1))), (await stored(ending)).length];

// Stop.
const stopping = await begun(pair[0], () => pair[0].sendMessage({ text: "Slowly, please." }));
await fetch(`${addressOf(ending)}/chat/interrupt`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: "{}",
});
await stopping.sending;
told.stopped = [pair[0].status, wordsOf(pair[0].messages.at(-1)), pair[0].messages.at(-1).metadata.status];

// A tool of the page.
const weather = {
  name: "weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
let runs = 0;
const asking = chat(tools, {
  transport: { body: { tools: [weather] } },
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
  onToolCall: ({ toolCall }) => {
    runs += 1;
    asking.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { sky: toolCall.input.city } });
  },
});
await asking.sendMessage({ text: "Is it fine in Graz?" });
await until(() => asking.status === "ready" && wordsOf(asking.messages.at(-1)));
told.tool = [asking.messages.length, typesOf(asking.messages.at(-1)), wordsOf(asking.messages.at(-1))];
told.toolStored = (await stored(tools)).map((message) => message.role);
const shown = (await history(tools)).at(-1);
told.toolShown = [shown.id === asking.messages.at(-1).id, typesOf(shown)];
told.output = shown.parts.find((part) => part.type === "dynamic-tool").output;

// Its reply once more: the tool is not run again, and what it came to is still there.
const tellsBefore = structuredClone(asking.messages);
await asking.regenerate();
const remade = asking.messages.at(-1);
told.toolAgain = [runs, asking.messages.length, remade.id === tellsBefore.at(-1).id, typesOf(remade), wordsOf(remade)];
told.toolKept = remade.parts.find((part) => part.type === "dynamic-tool");

// The SDK's own judges: of each chunk, of each stream, of the history; and what they refuse.
const schema = asSchema(uiMessageChunkSchema);
const streamOf = (text) =>
  parseJsonEventStream({ stream: new Response(text).body, schema: uiMessageChunkSchema }).pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        if (!chunk.success) throw chunk.error;
        controller.enqueue(chunk.value);
      },
    }),
  );
async function lastOf(text) {
  let last;
  const onError = () => {};
  for await (const message of readUIMessageStream({ stream: streamOf(text), onError })) last = message;
  return last;
}
const texts = await Promise.all(recorded);
const chunks = texts.flatMap((text) =>
  text.split("\n\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6))),
);
const verdicts = await Promise.all(chunks.map((chunk) => schema.validate(chunk)));
told.chunks = chunks.length;
told.types = [...new Set(chunks.map((chunk) => chunk.type))].sort();
told.refused = chunks.filter((_, number) => !verdicts[number].success).map((chunk) => chunk.type);
told.ended = texts.every((text) => text.endsWith("data: [DONE]\n\n"));
told.read = (await Promise.all(texts.map(lastOf))).every((message) => message.role === "assistant");
told.histories = await Promise.all(
  [talk, tools, ending].map(async (id) => (await safeValidateUIMessages({ messages: await history(id) })).success),
);
const unknown = { type: "reset-step" };
told.controlChunk = (await schema.validate(unknown)).success;
told.controlStream = await lastOf(`data: ${JSON.stringify(unknown)}\n\n`).then(
  (message) => message !== undefined,
  () => false,
);
told.controlHistory = (await safeValidateUIMessages({ messages: [{ id: "1", role: "user", parts: [{ type: "text" }] }] })).success;

console.log(JSON.stringify(told));
process.exit(0);
