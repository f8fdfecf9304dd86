// What the compiler has to know: checked by `npm run check`, never run.

import { ContextCompressor, Throughline, type ChatEvent, type ConversationEvent, type Schemas } from "../src/index.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => undefined;

export async function events(client: Throughline): Promise<void> {
  for await (const event of client.chatStream("id", { content: "hi", temperature: 0.2 })) {
    holds<Same<typeof event, ChatEvent>>();
    if (event.type === "reply.delta") holds<Same<typeof event.data.text, string>>();
    if (event.type === "reply.completed") holds<Same<typeof event.data, Schemas["ChatResult"]>>();
    if (event.type === "compaction.applied") holds<Same<typeof event.data.tokens_after, number | null>>();
    // @ts-expect-error a turn that failed is thrown
    if (event.type === "reply.failed") return;
  }
  for await (const event of client.events("id", { after: 3 })) {
    holds<Same<typeof event, ConversationEvent>>();
    if (event.type === "context.threshold") holds<Same<typeof event.data.budget, number>>();
    // @ts-expect-error only in the stream of a chat
    if (event.type === "reply.delta") return;
  }
}

export async function requests(client: Throughline): Promise<void> {
  const talk = await client.createConversation({ title: "Rooms" });
  holds<Same<typeof talk, Schemas["Conversation"]>>();
  await client.append(talk.id, { role: "user", content: "a field with a default may be left out" });
  // @ts-expect-error no such field
  await client.append(talk.id, { role: "user", content: "x", colour: "blue" });
  // @ts-expect-error no such level
  await client.makeLevel(talk.id, { level: "huge" });
  // @ts-expect-error no such level
  await new ContextCompressor(client, talk.id).expand("auth", 4);
  const { data } = await client.api.GET("/v1/models");
  holds<Same<typeof data extends undefined ? true : false, false>>();
  // @ts-expect-error no such path
  await client.api.GET("/nowhere");
}
