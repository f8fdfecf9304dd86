// The AI SDK with three of its providers, each with a tool that runs here.
// `npm install ai@6 @ai-sdk/openai@3 @ai-sdk/openai-compatible@2 @ai-sdk/open-responses@1 zod`
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const baseURL = process.env.OPENAI_BASE_URL ?? "http://localhost:8000/v1";
const apiKey = process.env.OPENAI_API_KEY ?? "none";
const models = {
  "openai (responses)": createOpenAI({ baseURL, apiKey }).responses("throughline"),
  "openai-compatible (chat)": createOpenAICompatible({ name: "throughline", baseURL, apiKey }).chatModel("throughline"),
  "open-responses": createOpenResponses({ name: "throughline", url: `${baseURL}/responses`, apiKey })("throughline"),
};
const tools = {
  get_weather: tool({
    description: "The weather of a place.",
    inputSchema: z.object({ place: z.string() }),
    execute: async ({ place }) => `Sunny in ${place}`,
  }),
};

for (const [name, model] of Object.entries(models)) {
  const plain = await generateText({ model, prompt: "Hello!" });
  assert.ok(plain.text);
  let streamed = "";
  for await (const piece of streamText({ model, prompt: "Hello!" }).textStream) streamed += piece;
  assert.ok(streamed);
  const called = await generateText({ model, tools, prompt: "What is the weather like?", stopWhen: stepCountIs(3) });
  console.log(`${name}: ${plain.text} | ${called.steps.length} steps: ${called.text}`);
}
