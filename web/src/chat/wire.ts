/**
 * The AI SDK's UI message stream, read without the SDK: `useChat` keeps every message of a conversation in memory, and
 * with its validators it is a third of the script that this page may have.
 */
import { ApiError, send } from '@/api/client';
import { framesOf } from '@/api/frames';
import type { Gauge } from '@/api/types';
import { type Chunk, EMPTY, grown, type Handlers, type Reply } from './parts';

const END = '[DONE]';
const FIRST_PAUSE = 500;
const LAST_PAUSE = 4_000;

/** Ask, and read the reply as it comes. If the connection breaks, the message's id is the key that makes it one turn. */
export async function ask(
  conversation: string,
  key: string,
  text: string,
  handlers: Handlers,
  signal: AbortSignal,
): Promise<Reply> {
  const message = { id: key, role: 'user', parts: [{ type: 'text', text }] };
  const body = { id: conversation, trigger: 'submit-message', message, utc_offset: -new Date().getTimezoneOffset() };
  const headers = { 'Idempotency-Key': key };
  for (let pause = FIRST_PAUSE; ; pause *= 2) {
    try {
      return await read(await send('POST', `/conversations/${conversation}/ui`, { body, headers, signal }), handlers, signal);
    } catch (error) {
      const isBroken = error instanceof ApiError && error.status === 0;
      if (!isBroken || pause > LAST_PAUSE || signal.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/** Ask for the last reply to be written again. Throws `ApiError`. */
export async function askAgain(
  conversation: string,
  reply: string,
  handlers: Handlers,
  signal: AbortSignal,
): Promise<Reply> {
  const body = { id: conversation, trigger: 'regenerate-message', messageId: reply };
  return read(await send('POST', `/conversations/${conversation}/ui`, { body, signal }), handlers, signal);
}

/** Follow the running turn from its beginning; `null` if none runs. Throws `ApiError`. */
export async function follow(conversation: string, handlers: Handlers, signal: AbortSignal): Promise<Reply | null> {
  const response = await send('GET', `/conversations/${conversation}/ui/stream`, { signal });
  return response.status === 204 ? null : read(response, handlers, signal);
}

async function read(response: Response, handlers: Handlers, signal: AbortSignal): Promise<Reply> {
  handlers.onArrived();
  if (!response.body) throw new ApiError(0, 'unreachable', 'unreachable');
  const reader = framesOf(response.body);
  let reply: Reply = EMPTY;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true as const, value: undefined }));
      if (signal.aborted) return reply;
      // A stream without its closing event was cut off.
      if (done) throw new ApiError(0, 'unreachable', 'unreachable');
      if (value.data === END) return reply;
      const chunk = JSON.parse(value.data) as Chunk;
      if (chunk.type === 'error') throw new Error(String(chunk.errorText));
      if (chunk.type === 'data-gauge') handlers.onGauge(chunk.data as Gauge);
      const next = grown(reply, chunk);
      if (next !== reply) handlers.onReply((reply = next));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
