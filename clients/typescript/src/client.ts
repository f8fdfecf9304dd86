/** The client: every endpoint as a method. Names on the wire are those of the contract. */

import createClient, { type Client } from "openapi-fetch";
import { attempt, newKey, RETRYING, retryingFetch, sleep, type Fetch, type Retrying } from "./retrying.js";
import type { components, paths } from "./schema.js";
import { EventStream, FollowedReply, follow, ReplyStream, type ChatEvent, type ConversationEvent } from "./streams.js";

export type Schemas = components["schemas"];
export type Order = "asc" | "desc";
export type Level = "full" | "detailed" | "brief" | "tags";

/** The options of a client. */
export interface Options {
  /** The API key, if the service asks for one. */
  key?: string;
  /** The language of labels, notifications and titles of problems (`Accept-Language`). */
  language?: string;
  /** Milliseconds for one try, and between two signs of life of a stream; 90 000 by default. */
  timeout?: number;
  /** How patient the client is. */
  retrying?: Partial<Retrying>;
  /** The function that sends the requests: Next.js's, React Native's, or a test's. */
  fetch?: Fetch;
  /** The function that waits. */
  sleep?: typeof sleep;
}

/** The options of a request: `signal` ends it, and the waiting between its tries. */
export interface Asked {
  signal?: AbortSignal;
}

/** The options of a `POST`: under the same key it has one effect, however many times it is sent. */
export interface Keyed extends Asked {
  idempotencyKey?: string;
}

/** The options of a change: it is made only if the state version is this one. */
export interface Matching {
  ifMatch?: number;
}

/** The options of a list: how many items one request brings. */
export interface Listed extends Asked {
  order?: Order;
  pageSize?: number;
}

type Each<Item> = AsyncGenerator<Item, void, undefined>;
type Body<Name extends keyof Schemas> = Schemas[Name];
type Answer<Data> = Promise<{ data?: Data }>;

interface Page<Item> {
  data: Item[];
  next_cursor?: string | null;
  has_more?: boolean;
}

const CONVERSATIONS = "/conversations";
const ONE = "/conversations/{conversation_id}";
const EVENT_STREAM = "text/event-stream";

/** A client of one service. Methods with `Stream` in their names, and lists, are asynchronous iterators. */
export class Throughline {
  /** Every operation of the API by its path, typed, with the same retries, keys and errors as the methods. */
  readonly api: Client<paths, "application/json">;
  private readonly options: Required<Pick<Options, "timeout" | "sleep" | "fetch">> & { retrying: Retrying };

  constructor(url = "http://localhost:8000", options: Options = {}) {
    // Without a scheme, `localhost:` would be taken for one; a page may give a path of its own origin.
    if (url.includes(":") && !/^https?:\/\//i.test(url)) {
      throw new TypeError(`"${url}" is no address of a service, such as http://localhost:8000`);
    }
    const { key, language, timeout = 90_000 } = options;
    const send = options.fetch ?? ((request, init) => globalThis.fetch(request, init));
    const retrying = { ...RETRYING, ...options.retrying };
    this.options = { timeout, sleep: options.sleep ?? sleep, fetch: send, retrying };
    this.api = createClient<paths, "application/json">({
      baseUrl: url,
      headers: { Accept: "application/json", Authorization: key && `Bearer ${key}`, "Accept-Language": language },
      fetch: retryingFetch(send, this.options),
    });
  }

  // Conversations

  createConversation(fields: Body<"ConversationCreate"> = {}, options: Keyed = {}): Promise<Schemas["Conversation"]> {
    return found(this.api.POST(CONVERSATIONS, { body: fields, ...sent(options) }));
  }

  conversation(id: string, options: Asked = {}): Promise<Schemas["Conversation"]> {
    return found(this.api.GET(ONE, { params: at(id), ...sent(options) }));
  }

  conversations(options: Listed & { user_id?: string } = {}): Each<Schemas["ConversationSummary"]> {
    const { user_id } = options;
    return each(
      (page) => this.api.GET(CONVERSATIONS, { params: { query: { user_id, ...page } }, ...sent(options) }),
      options,
    );
  }

  /** Change the given fields; `null` is a value. */
  changeConversation(
    id: string,
    changes: Body<"ConversationPatch">,
    options: Matching = {},
  ): Promise<Schemas["Conversation"]> {
    return found(this.api.PATCH(ONE, { params: at(id), body: changes, ...sent(options) }));
  }

  /** Delete a conversation and everything derived from it. */
  deleteConversation(id: string, options: Asked = {}): Promise<void> {
    return done(this.api.DELETE(ONE, { params: at(id), ...sent(options) }));
  }

  usage(id: string, options: Asked = {}): Promise<Schemas["Gauge"]> {
    return found(this.api.GET(`${ONE}/usage`, { params: at(id), ...sent(options) }));
  }

  stats(id: string, options?: Asked): Promise<Schemas["ConversationStats"]>;
  stats(id?: undefined, options?: Asked & { since?: string }): Promise<Schemas["ServiceStats"]>;
  stats(
    id?: string,
    options: Asked & { since?: string } = {},
  ): Promise<Schemas["ConversationStats"] | Schemas["ServiceStats"]> {
    if (id === undefined)
      return found(this.api.GET("/stats", { params: { query: { since: options.since } }, ...sent(options) }));
    return found(this.api.GET(`${ONE}/stats`, { params: at(id), ...sent(options) }));
  }

  /** The full history, with states and anchors. */
  export(id: string, options: Asked = {}): Promise<Record<string, unknown>> {
    return found(this.api.GET(`${ONE}/export`, { params: { ...at(id), query: { format: "json" } }, ...sent(options) }));
  }

  /** The messages as Markdown. */
  async exportMarkdown(id: string, options: Asked = {}): Promise<string> {
    const params = { ...at(id), query: { format: "markdown" as const } };
    return found(
      this.api.GET(`${ONE}/export`, { params, parseAs: "text", ...sent(options, { Accept: "text/markdown" }) }),
    );
  }

  // Messages

  append(id: string, message: Body<"MessageAppend">, options: Keyed = {}): Promise<Schemas["Message"]> {
    return found(this.api.POST(`${ONE}/messages`, { params: at(id), body: message, ...sent(options) }));
  }

  /** Append up to 1 000 messages, all or none. */
  async appendMany(
    id: string,
    messages: Body<"MessageBatch">["messages"],
    options: Keyed & { expected_last_message_id?: string } = {},
  ): Promise<Schemas["Message"][]> {
    const body = { messages, expected_last_message_id: options.expected_last_message_id };
    return (await found(this.api.POST(`${ONE}/messages/batch`, { params: at(id), body, ...sent(options) }))).data;
  }

  /** The full history, never affected by compaction. */
  messages(id: string, options: Listed = {}): Each<Schemas["Message"]> {
    return each(
      (page) =>
        // Without `format` they always have the service's own form, never the AI SDK's.
        this.api.GET(`${ONE}/messages`, {
          params: { ...at(id), query: page },
          ...sent(options),
        }) as Answer<Page<Schemas["Message"]>>,
      options,
    );
  }

  /** Erase a message from the history and from everything derived from it. */
  eraseMessage(id: string, messageId: string, options: Asked = {}): Promise<void> {
    return done(
      this.api.DELETE(`${ONE}/messages/{message_id}`, { params: at(id, { message_id: messageId }), ...sent(options) }),
    );
  }

  /** Keep a message verbatim for ever. */
  pinMessage(id: string, messageId: string, options: Asked = {}): Promise<Schemas["Message"]> {
    return found(
      this.api.PUT(`${ONE}/messages/{message_id}/pin`, { params: at(id, { message_id: messageId }), ...sent(options) }),
    );
  }

  unpinMessage(id: string, messageId: string, options: Asked = {}): Promise<Schemas["Message"]> {
    return found(
      this.api.DELETE(`${ONE}/messages/{message_id}/pin`, {
        params: at(id, { message_id: messageId }),
        ...sent(options),
      }),
    );
  }

  /** Attach a file. Every context contains it whole, before all messages. `tokens` is a sound's or a film's weight. */
  attachFile(
    id: string,
    file: { data: string | Uint8Array<ArrayBuffer> | Blob; name: string; media_type: string; tokens?: number },
    options: Keyed = {},
  ): Promise<Schemas["File"]> {
    const { data, name, media_type, tokens } = file;
    return found(
      this.api.POST(`${ONE}/files`, {
        params: { ...at(id), query: { name, tokens } },
        body: data as never,
        bodySerializer: (body: unknown) => body as BodyInit,
        ...sent(options, { "Content-Type": media_type }),
      }),
    );
  }

  /** The files of a conversation, as they were attached. */
  files(id: string, options: Listed = {}): Each<Schemas["File"]> {
    return each(
      (page) => this.api.GET(`${ONE}/files`, { params: { ...at(id), query: page }, ...sent(options) }),
      options,
    );
  }

  /** One file, without its bytes. */
  file(id: string, fileId: string, options: Asked = {}): Promise<Schemas["File"]> {
    return found(this.api.GET(`${ONE}/files/{file_id}`, { params: at(id, { file_id: fileId }), ...sent(options) }));
  }

  /** The bytes of a file. */
  async fileContent(id: string, fileId: string, options: Asked = {}): Promise<Uint8Array> {
    const bytes: ArrayBuffer = await found(
      this.api.GET(`${ONE}/files/{file_id}/content`, {
        params: at(id, { file_id: fileId }),
        parseAs: "arrayBuffer",
        ...sent(options, { Accept: "*/*" }),
      }),
    );
    return new Uint8Array(bytes);
  }

  /** Remove a file from every context, and the copy that a provider keeps. */
  removeFile(id: string, fileId: string, options: Asked = {}): Promise<void> {
    return done(this.api.DELETE(`${ONE}/files/{file_id}`, { params: at(id, { file_id: fileId }), ...sent(options) }));
  }

  /** The original messages that fit a query, the best first. */
  search(id: string, q: string, options: Omit<Listed, "order"> = {}): Each<Schemas["SearchHit"]> {
    const load = (page: Paged) =>
      this.api.GET(`${ONE}/search`, { params: { ...at(id), query: { q, ...page } }, ...sent(options) });
    return each(load, options);
  }

  // Turns

  /** Send a message, or `tool_results`, and get the reply; without either, the waiting message is answered. */
  chat(id: string, turn: string | Body<"ChatRequest"> = {}, options: Keyed = {}): Promise<Schemas["ChatResult"]> {
    const answer = this.api.POST(`${ONE}/chat`, { params: at(id), body: turnOf(turn), ...sent(options) });
    return found(answer as Answer<Schemas["ChatResult"]>);
  }

  /** The same as a stream, whose last event has the whole result. Throws the error with which a turn failed. */
  chatStream(id: string, turn: string | Body<"ChatRequest"> = {}, options: Keyed = {}): Each<ChatEvent> {
    const init = { params: at(id), body: turnOf(turn), ...this.streamed(options) };
    return this.followed(new ReplyStream(this.options.retrying), () => this.api.POST(`${ONE}/chat`, init), options);
  }

  /**
   * The running turn from its beginning, in whichever process it runs; nothing if none runs.
   *
   * If the turn ends while the connection is broken, there is no last event; the reply is in the history.
   */
  followTurn(id: string, options: Asked = {}): Each<ChatEvent> {
    const init = { params: at(id), ...this.streamed(options) };
    return this.followed(
      new FollowedReply(this.options.retrying),
      () => this.api.GET(`${ONE}/chat/stream`, init),
      options,
    );
  }

  /** Make the last reply again; the first one stays in the history as `superseded`. */
  regenerate(id: string, turn: Body<"RegenerateRequest"> = {}, options: Keyed = {}): Promise<Schemas["ChatResult"]> {
    const answer = this.api.POST(`${ONE}/chat/regenerate`, { params: at(id), body: turn, ...sent(options) });
    return found(answer as Answer<Schemas["ChatResult"]>);
  }

  regenerateStream(id: string, turn: Body<"RegenerateRequest"> = {}, options: Keyed = {}): Each<ChatEvent> {
    const init = { params: at(id), body: turn, ...this.streamed(options) };
    return this.followed(
      new ReplyStream(this.options.retrying),
      () => this.api.POST(`${ONE}/chat/regenerate`, init),
      options,
    );
  }

  /** Stop the running reply; what has come so far is kept. */
  interrupt(id: string, options: Keyed = {}): Promise<Schemas["Interruption"]> {
    return found(this.api.POST(`${ONE}/chat/interrupt`, { params: at(id), body: {}, ...sent(options) }));
  }

  /** Every event after the given one, as it happens; a broken connection is continued where it broke off. */
  events(id: string, options: Asked & { after?: string | number } = {}): Each<ConversationEvent> {
    const stream = new EventStream(this.options.retrying, options.after?.toString());
    return this.followed(
      stream,
      (headers) => this.api.GET(`${ONE}/events`, { params: at(id), ...this.streamed(options, headers) }),
      options,
    );
  }

  // Compaction

  /** Compact now, or in the worker with `wait: false`. */
  compact(id: string, request: Body<"CompactRequest"> = {}, options: Keyed = {}): Promise<Schemas["Compaction"]> {
    return found(this.api.POST(`${ONE}/compact`, { params: at(id), body: request, ...sent(options) }));
  }

  compactions(id: string, options: Listed = {}): Each<Schemas["Compaction"]> {
    return each(
      (page) => this.api.GET(`${ONE}/compactions`, { params: { ...at(id), query: page }, ...sent(options) }),
      options,
    );
  }

  /** What the conversation could still answer after each compaction that was scored. */
  continuity(id: string, options: Listed = {}): Each<Schemas["CompactionContinuity"]> {
    return each(
      (page) => this.api.GET(`${ONE}/continuity`, { params: { ...at(id), query: page }, ...sent(options) }),
      options,
    );
  }

  /** The verifications of a conversation's state by a model. */
  verifications(id: string, options: Listed = {}): Each<Schemas["Verification"]> {
    return each(
      (page) => this.api.GET(`${ONE}/verifications`, { params: { ...at(id), query: page }, ...sent(options) }),
      options,
    );
  }

  compaction(compactionId: string, options: Asked = {}): Promise<Schemas["Compaction"]> {
    return found(
      this.api.GET("/compactions/{compaction_id}", {
        params: { path: ids({ compaction_id: compactionId }) },
        ...sent(options),
      }),
    );
  }

  /** The compactions of all conversations; needs the scope `admin`. */
  allCompactions(
    options: Listed & { status?: Exclude<Schemas["Compaction"]["status"], "planned"> } = {},
  ): Each<Schemas["Compaction"]> {
    const { status } = options;
    return each(
      (page) => this.api.GET("/compactions", { params: { query: { status, ...page } }, ...sent(options) }),
      options,
    );
  }

  /** Queue a failed compaction once more; needs the scope `admin`. */
  retryCompaction(compactionId: string, options: Keyed = {}): Promise<Schemas["Compaction"]> {
    const params = { path: ids({ compaction_id: compactionId }) };
    return found(this.api.POST("/compactions/{compaction_id}/retry", { params, body: {}, ...sent(options) }));
  }

  /** Release a conversation that was set aside; needs the scope `admin`. */
  release(id: string, options: Keyed = {}): Promise<Schemas["Conversation"]> {
    return found(this.api.POST(`${ONE}/release`, { params: at(id), body: {}, ...sent(options) }));
  }

  /** The damage by earlier checks in the served state; with `mend`, code corrects what it can. */
  examine(
    id: string,
    request: Body<"ExaminationRequest"> = {},
    options: Keyed & Matching = {},
  ): Promise<Schemas["Examination"]> {
    return found(this.api.POST(`${ONE}/examination`, { params: at(id), body: request, ...sent(options) }));
  }

  /** Every version of the state. */
  states(id: string, options: Listed = {}): Each<Schemas["StateVersion"]> {
    const load = (page: Paged) =>
      this.api.GET(`${ONE}/states`, { params: { ...at(id), query: page }, ...sent(options) });
    return each(load as (page: Paged) => Answer<Page<Schemas["StateVersion"]>>, options);
  }

  /** The differences between version `a` and version `b`. */
  compareStates(id: string, a: number, b: number, options: Asked = {}): Promise<Schemas["StateDifference"]> {
    const answer = this.api.GET(`${ONE}/states`, { params: { ...at(id), query: { a, b } }, ...sent(options) });
    return found(answer as Answer<Schemas["StateDifference"]>);
  }

  /** Go back to an earlier state, as a new version. */
  restore(id: string, stateVersion: number, options: Keyed & Matching = {}): Promise<Schemas["Conversation"]> {
    return found(
      this.api.POST(`${ONE}/restore`, { params: at(id), body: { state_version: stateVersion }, ...sent(options) }),
    );
  }

  // Contexts

  /** What a model would be sent. This never compacts, and counts nothing. */
  lookAtContext(
    id: string,
    query: { budget?: number; query?: string; format?: Body<"ContextRequest">["format"] } = {},
    options: Asked = {},
  ): Promise<Schemas["AssembledContext"]> {
    return found(this.api.GET(`${ONE}/context`, { params: { ...at(id), query }, ...sent(options) }));
  }

  /** A context for a model of your own. */
  context(id: string, request: Body<"ContextRequest"> = {}, options: Keyed = {}): Promise<Schemas["AssembledContext"]> {
    return found(this.api.POST(`${ONE}/context`, { params: at(id), body: request, ...sent(options) }));
  }

  /** The segments of the current state version, each at this level or the nearest that it has. */
  segments(id: string, options: Listed & { level?: Exclude<Level, "full"> } = {}): Each<Schemas["Segment"]> {
    const { level } = options;
    return each(
      (page) => this.api.GET(`${ONE}/segments`, { params: { ...at(id), query: { level, ...page } }, ...sent(options) }),
      options,
    );
  }

  /** A segment at a level of detail; if it is large, one page of it. */
  segment(
    id: string,
    segmentId: string,
    query: { level?: Level; max_tokens?: number; after?: string } = {},
    options: Asked = {},
  ): Promise<Schemas["Segment"]> {
    return found(
      this.api.GET(`${ONE}/segments/{segment_id}`, {
        params: { ...at(id, { segment_id: segmentId }), query },
        ...sent(options),
      }),
    );
  }

  /** Make a level of a segment now; the segment is named by its id or by its range. */
  makeLevel(id: string, request: Body<"SegmentRequest">, options: Keyed = {}): Promise<Schemas["Segment"]> {
    return found(this.api.POST(`${ONE}/segments`, { params: at(id), body: request, ...sent(options) }));
  }

  anchors(
    id: string,
    options: Listed & Pick<Partial<Schemas["Anchor"]>, "type" | "status"> = {},
  ): Each<Schemas["Anchor"]> {
    const { type, status } = options;
    return each(
      (page) =>
        this.api.GET(`${ONE}/anchors`, { params: { ...at(id), query: { type, status, ...page } }, ...sent(options) }),
      options,
    );
  }

  /** Set the status of an anchor. */
  setAnchorStatus(
    id: string,
    anchorId: string,
    status: Body<"AnchorPatch">["status"],
    options: Asked = {},
  ): Promise<Schemas["Anchor"]> {
    return found(
      this.api.PATCH(`${ONE}/anchors/{anchor_id}`, {
        params: at(id, { anchor_id: anchorId }),
        body: { status },
        ...sent(options),
      }),
    );
  }

  // The service

  async presets(options: Asked = {}): Promise<Schemas["Preset"][]> {
    return (await found(this.api.GET("/presets", sent(options)))).data;
  }

  /** The limits of the key and of its tenant, and how much of each is left. */
  limits(options: Asked = {}): Promise<Schemas["KeyLimits"]> {
    return found(this.api.GET("/limits", sent(options)));
  }

  /** Who did what; needs the scope `admin`. */
  audit(options: Listed = {}): Each<Schemas["AuditEntry"]> {
    return each((page) => this.api.GET("/audit", { params: { query: page }, ...sent(options) }), options);
  }

  /** Start deleting every conversation of an end user; needs the scope `admin`. */
  eraseUser(userId: string, options: Keyed = {}): Promise<Schemas["Erasure"]> {
    return found(this.api.DELETE("/users/{user_id}", { params: { path: ids({ user_id: userId }) }, ...sent(options) }));
  }

  /** The weight of a text, or of messages, in tokens. */
  countTokens(of: string | Body<"TokenCountRequest">, options: Keyed = {}): Promise<Schemas["TokenCount"]> {
    return found(
      this.api.POST("/tokens/count", { body: typeof of === "string" ? { text: of } : of, ...sent(options) }),
    );
  }

  /** Whether the process answers. */
  health(options: Asked = {}): Promise<Schemas["Health"]> {
    return found(this.api.GET("/healthz", sent(options)));
  }

  /** Whether the servers that the service needs answer. */
  readiness(options: Asked = {}): Promise<Schemas["Readiness"]> {
    return found(this.api.GET("/readyz", sent(options)));
  }

  /** How a stream is requested: in one try each, with the same key for all. */
  private streamed(options: Keyed, headers: Record<string, string> = {}) {
    const { fetch, timeout } = this.options;
    const key = options.idempotencyKey ?? newKey();
    return {
      ...sent({ ...options, idempotencyKey: key }, { Accept: EVENT_STREAM, ...headers }),
      parseAs: "stream" as const,
      fetch: (request: Request) => attempt(fetch, request, timeout),
    };
  }

  private followed<Item>(
    stream: Parameters<typeof follow<Item>>[0],
    open: (headers: Record<string, string>) => Promise<{ response: Response }>,
    { signal }: Asked,
  ) {
    return follow(stream, { ...this.options, signal, open: async (headers) => (await open(headers)).response });
  }
}

interface Paged {
  order?: Order | undefined;
  limit?: number | undefined;
  after?: string | undefined;
}

/** Every item of a list; pages are read as they are needed. */
async function* each<Item>(load: (page: Paged) => Answer<Page<Item>>, options: Listed): Each<Item> {
  let page: Page<Item> | undefined;
  do {
    const after: string | undefined = page?.next_cursor ?? undefined;
    page = await found(load({ order: options.order, limit: options.pageSize, after }));
    yield* page.data;
  } while (page.has_more && page.next_cursor);
}

/** The data of an answer; every error was thrown before. */
async function found<Data>(answer: Answer<Data>): Promise<Data> {
  return (await answer).data as Data;
}

async function done(answer: Promise<unknown>): Promise<void> {
  await answer;
}

function at<More extends Record<string, string>>(id: string, more?: More) {
  return { path: ids({ conversation_id: id, ...more } as { conversation_id: string } & More) };
}

/** The same ids. Throws a `TypeError` for one that would be a step within the path, and lead to something else. */
function ids<Ids extends Record<string, string>>(path: Ids): Ids {
  for (const id of Object.values(path)) if (id === "." || id === "..") throw new TypeError(`"${id}" is no id`);
  return path;
}

function sent(options: Keyed & Matching, headers: Record<string, string> = {}) {
  const match = options.ifMatch === undefined ? undefined : `"${options.ifMatch}"`;
  return {
    signal: options.signal ?? null,
    headers: { "Idempotency-Key": options.idempotencyKey, "If-Match": match, ...headers },
  };
}

function turnOf(turn: string | Body<"ChatRequest">): Body<"ChatRequest"> {
  return typeof turn === "string" ? { content: turn } : turn;
}
