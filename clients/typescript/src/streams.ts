/** Streams that go on where they broke off, event by event. */

import { createParser, type EventSourceMessage } from "eventsource-parser";
import { ApiError, ConnectionFailedError, errorOf, type ProblemMembers } from "./errors.js";
import { failed, Patience, within, type Failure, type Retrying, type sleep } from "./retrying.js";
import type { components } from "./schema.js";

type Schemas = components["schemas"];
/** One event of a turn; the last one has the whole result. A turn that failed is thrown. */
export type ChatEvent = Exclude<Schemas["ChatStreamEvent"], Schemas["ReplyFailed"]>;
/** One event of a conversation. */
export type ConversationEvent = Schemas["ConversationEvent"];

const NOTHING = { "reply.delta": "", "reasoning.delta": "" };
const MAX_EVENT_LENGTH = 64_000_000; // characters of one event: a reply with its whole context is far less

/** How streams are opened and waited for. */
export interface Connection {
  retrying: Retrying;
  timeout: number;
  sleep: typeof sleep;
  signal?: AbortSignal | undefined;
  /** Begin, with these headers. Throws what `attempt` throws. */
  open(headers: Record<string, string>): Promise<Response>;
}

/** A stream, as its transport sees it. */
interface Stream<Item> {
  /** Nothing more will come, over whatever connection. */
  isOver: boolean;
  /** Nothing more will come over this connection. */
  hasEnded: boolean;
  /** A connection begins: returns the headers of its request. */
  begin(): Record<string, string>;
  /** The items for the reader. */
  feed(received: EventSourceMessage): Iterable<Item>;
  /** The connection has ended: returns the milliseconds until the next one. Throws if there is none. */
  ended(failure: Failure | undefined): number;
}

/** The items of a stream, over as many connections as it takes. */
export async function* follow<Item>(
  stream: Stream<Item>,
  connection: Connection,
): AsyncGenerator<Item, void, undefined> {
  while (!stream.isOver) {
    let failure: Failure | undefined;
    try {
      const response = await connection.open(stream.begin());
      if (response.status !== 204) {
        for await (const received of readEvents(response, connection)) {
          yield* stream.feed(received);
          if (stream.hasEnded) break;
        }
      }
    } catch (thrown) {
      if (!(thrown instanceof ApiError || thrown instanceof ConnectionFailedError)) throw thrown;
      failure = thrown;
    }
    await connection.sleep(stream.ended(failure), connection.signal);
  }
}

/** The events of a response, however its bytes are cut; a long silence, and a page that is no stream, are failures. */
export async function* readEvents(
  response: Response,
  { timeout, signal, limit = MAX_EVENT_LENGTH }: Pick<Connection, "timeout" | "signal"> & { limit?: number },
): AsyncGenerator<EventSourceMessage, void, undefined> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
    await response.body?.cancel();
    throw new ConnectionFailedError("the answer is no stream of events");
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const events: EventSourceMessage[] = [];
  const tooLong = (error: Error) => {
    if ("type" in error && error.type === "max-buffer-size-exceeded") throw new ConnectionFailedError(error.message);
  };
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onRetry: () => events.push({ id: undefined, event: undefined, data: "" }),
    onError: tooLong,
    maxBufferSize: limit,
  });
  try {
    for (;;) {
      const { done, value } = await within(timeout, reader.read()).catch((thrown: unknown) => {
        throw failed(thrown, signal);
      });
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* events.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** The events of a conversation, each once and in order, whatever happens to the connection. */
export class EventStream implements Stream<ConversationEvent> {
  readonly isOver = false;
  readonly hasEnded = false;
  private readonly patience: Patience;

  constructor(
    retrying: Retrying,
    private last?: string,
  ) {
    this.patience = new Patience(retrying);
  }

  begin(): Record<string, string> {
    return this.last === undefined ? {} : { "Last-Event-ID": this.last };
  }

  *feed(received: EventSourceMessage): Iterable<ConversationEvent> {
    this.patience.failures = 0; // also after the hint that begins each stream: a conversation may be silent for days
    if (!received.data) return;
    const event = JSON.parse(received.data) as ConversationEvent;
    this.last = received.id || this.last;
    yield event;
  }

  ended(failure: Failure | undefined): number {
    // A service that stops ends its streams regularly, and may be back in a moment.
    return this.patience.after(failure ?? new ConnectionFailedError("the stream of events ended"));
  }
}

/**
 * A turn as it comes. After a break it is requested again under its key, so it has one effect, and no word comes twice.
 *
 * A turn that had to be answered again says something other than the words given so far. Then no more of it is given
 * piece by piece, and the last event has the whole reply.
 */
export class ReplyStream implements Stream<ChatEvent> {
  isOver = false;
  hasEnded = false;
  protected failure: ApiError | undefined;
  private readonly patience: Patience;
  /** The reply and the thoughts as far as the reader has them, and what of them came over this connection. */
  private given = NOTHING;
  private came = NOTHING;
  private readonly seen = new Set<string>();

  constructor(retrying: Retrying) {
    this.patience = new Patience(retrying);
  }

  begin(): Record<string, string> {
    this.came = NOTHING;
    this.failure = undefined;
    this.hasEnded = false;
    return {};
  }

  *feed(received: EventSourceMessage): Iterable<ChatEvent> {
    if (!received.data) return;
    const id = received.id ? { id: Number(received.id) } : {};
    const event = { type: received.event, ...id, data: JSON.parse(received.data) } as Schemas["ChatStreamEvent"];
    switch (event.type) {
      case "reply.delta":
      case "reasoning.delta":
        return yield* this.delta(event.type, event.data.text);
      case "reply.failed":
        this.failure = errorOf(event.data.status, event.data as ProblemMembers);
        this.hasEnded = true;
        return;
      case "reply.completed":
      case "reply.interrupted":
        this.isOver = this.hasEnded = true;
        return yield event;
      default:
        if (this.seen.has(nameOf(event))) return;
        this.seen.add(nameOf(event));
        yield event;
    }
  }

  /** The stream is over once the reply is there; otherwise the turn goes on without us, and is requested again. */
  ended(failure: Failure | undefined): number {
    if (this.isOver) return 0;
    if (this.failure !== undefined && this.given["reply.delta"]) throw this.failure;
    return this.patience.after(this.failure ?? failure ?? new ConnectionFailedError("the reply broke off"));
  }

  private *delta(type: keyof typeof NOTHING, text: string): Iterable<ChatEvent> {
    const came = this.came[type] + text;
    const given = this.given[type];
    this.came = { ...this.came, [type]: came };
    if (came.length <= given.length || !came.startsWith(given)) return;
    this.given = { ...this.given, [type]: came };
    yield { type, data: { text: came.slice(given.length) } };
  }
}

/** A turn that somebody else began; the stream is over when it has ended, and at once if none runs. */
export class FollowedReply extends ReplyStream {
  private heard = false;

  override begin(): Record<string, string> {
    this.heard = false;
    return super.begin();
  }

  override *feed(received: EventSourceMessage): Iterable<ChatEvent> {
    this.heard = true;
    yield* super.feed(received);
  }

  /** The stream is also over if nothing came, since then no turn runs. Throws the error with which a turn failed. */
  override ended(failure: Failure | undefined): number {
    if (this.failure !== undefined) throw this.failure;
    this.isOver ||= failure === undefined && !this.heard;
    return super.ended(failure);
  }
}

/** The name by which an event is recognised over another connection. */
function nameOf(event: ChatEvent): string {
  // Repeated after the turn's end, a message's event has no number.
  if (event.type === "message.created") return `${event.type} ${event.data.message_id}`;
  if (event.type === "tool.called") return `${event.type} ${event.data.id}`;
  return event.id === undefined ? `${event.type} ${JSON.stringify(event.data)}` : `${event.id}`;
}
