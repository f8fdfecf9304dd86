/** Every request that the page makes, by name. */
import { call, type Query } from './client';
import { cursorAt } from './cursor';
import { download } from './download';
import type {
  Anchor,
  AnchorStatus,
  AssembledContext,
  AttachedFile,
  Compaction,
  Conversation,
  ConversationStats,
  ConversationSummary,
  Listing,
  Message,
  Preset,
  SearchHit,
  Segment,
  StateDifference,
  StateVersion,
} from './types';

export type Level = 'full' | 'detailed' | 'brief' | 'tags';
export type ContextFormat = 'plain' | 'openai' | 'gemini' | 'anthropic';
export type Order = 'asc' | 'desc';

export interface NewConversation {
  title?: string;
  locale?: string;
  preset?: string;
  policy?: Record<string, unknown>;
}

const NO_ID = '00000000-0000-0000-0000-000000000000';

const at = (id: string, rest = '') => `/conversations/${encodeURIComponent(id)}${rest}`;

export const listConversations = (after: string | null, limit: number, signal?: AbortSignal) =>
  call<Listing<ConversationSummary>>('GET', '/conversations', { query: { limit, after }, signal });

/** With the same `key`, a request that is sent again makes one conversation. */
export const createConversation = (body: NewConversation, key: string) =>
  call<Conversation>('POST', '/conversations', { body, headers: { 'Idempotency-Key': key } });

export const getConversation = (id: string, signal?: AbortSignal) => call<Conversation>('GET', at(id), { signal });

export const patchConversation = (id: string, body: Record<string, unknown>) =>
  call<Conversation>('PATCH', at(id), { body });

export const exportConversation = (id: string, format: 'json' | 'markdown') => download(at(id, '/export'), { format });

export const deleteConversation = (id: string) => call<void>('DELETE', at(id));

/** A page of the history next to a message, which it does not include; without a message, the page at the end. */
export const listMessages = (id: string, order: Order, next: number | null, limit: number, signal?: AbortSignal) =>
  call<Listing<Message>>('GET', at(id, '/messages'), {
    query: { order, limit, after: next === null ? null : cursorAt(next) },
    signal,
  });

export interface UiEntry {
  parts: { type: string }[];
  metadata?: { message_id: string; seq: number };
}

/** The messages from one number to another in the AI SDK's form, with passages and warnings. */
export async function listUiMessages(id: string, from: number, to: number, signal?: AbortSignal): Promise<UiEntry[]> {
  const found: UiEntry[] = [];
  let after: string | null = cursorAt(from - 1);
  while (after) {
    const page: Listing<UiEntry> = await call('GET', at(id, '/messages'), {
      query: { format: 'ui', limit: 100, order: 'asc', after },
      signal,
    });
    found.push(...page.data);
    const last = page.data.at(-1)?.metadata?.seq ?? to;
    after = last < to ? (page.next_cursor ?? null) : null;
  }
  return found;
}

export const searchMessages = (id: string, q: string, after: string | null, signal?: AbortSignal) =>
  call<Listing<SearchHit>>('GET', at(id, '/search'), { query: { q, limit: 30, after }, signal });

export const eraseMessage = (id: string, message: string) => call<void>('DELETE', at(id, `/messages/${message}`));

export const pinMessage = (id: string, message: string, pinned: boolean) =>
  call<Message>(pinned ? 'PUT' : 'DELETE', at(id, `/messages/${message}/pin`));

export const interrupt = (id: string) => call<{ interrupted: boolean }>('POST', at(id, '/chat/interrupt'));

export const compact = (id: string, focus: string | null) =>
  call<Compaction>('POST', at(id, '/compact'), { body: focus ? { focus } : {} });

export const listCompactions = (id: string, after: string | null, signal?: AbortSignal) =>
  call<Listing<Compaction>>('GET', at(id, '/compactions'), { query: { limit: 100, after }, signal });

export const listStates = (id: string, after: string | null, limit: number, signal?: AbortSignal) =>
  call<Listing<StateVersion>>('GET', at(id, '/states'), { query: { limit, after }, signal });

/** One version of the state; `undefined` if there is no such number. */
export async function getState(id: string, version: number, signal?: AbortSignal): Promise<StateVersion | undefined> {
  const found = await listStates(id, cursorAt(version + 1), 1, signal);
  return found.data.find((one) => one.version === version);
}

export const compareStates = (id: string, a: number, b: number, signal?: AbortSignal) =>
  call<StateDifference>('GET', at(id, '/states'), { query: { a, b }, signal });

export const restoreState = (id: string, version: number) =>
  call<Conversation>('POST', at(id, '/restore'), { body: { state_version: version } });

/** The anchors of the messages from one number to another, in their order. */
export async function anchorsBetween(id: string, from: number, to: number, signal?: AbortSignal): Promise<Anchor[]> {
  const found: Anchor[] = [];
  let after: string | null = cursorAt(from, 0, NO_ID);
  while (after) {
    const page: Listing<Anchor> = await call('GET', at(id, '/anchors'), {
      query: { limit: 100, order: 'asc', after },
      signal,
    });
    found.push(...page.data.filter((anchor) => anchor.original_position <= to));
    const last = page.data.at(-1);
    after = last && last.original_position <= to ? (page.next_cursor ?? null) : null;
  }
  return found;
}

export const setAnchorStatus = (id: string, anchor: string, status: AnchorStatus) =>
  call<Anchor>('PATCH', at(id, `/anchors/${anchor}`), { body: { status } });

export const listSegments = (id: string, after: string | null, signal?: AbortSignal) =>
  call<Listing<Segment>>('GET', at(id, '/segments'), { query: { limit: 50, after, order: 'desc' }, signal });

export const expandSegment = (id: string, segment: string, query: Query, signal?: AbortSignal) =>
  call<Segment>('GET', at(id, `/segments/${encodeURIComponent(segment)}`), { query, signal });

export const getContext = (id: string, format: ContextFormat, query: string, signal?: AbortSignal) =>
  call<AssembledContext>('GET', at(id, '/context'), { query: { format, query }, signal });

/** All files; a conversation has at most a hundred. */
export const listFiles = (id: string, signal?: AbortSignal) =>
  call<Listing<AttachedFile>>('GET', at(id, '/files'), { query: { limit: 100 }, signal });

interface NewFile {
  file: Blob;
  name: string;
  type: string;
  /** What the file weighs, if its bytes do not show that. */
  tokens: number | null;
}

/** With the same `key`, a file that is sent again is attached once. */
export const attachFile = (id: string, { file, name, type, tokens }: NewFile, key: string) =>
  call<AttachedFile>('POST', at(id, '/files'), { query: { name, tokens }, file: { data: file, type }, headers: { 'Idempotency-Key': key } });

export const removeFile = (id: string, file: string) => call<void>('DELETE', at(id, `/files/${file}`));

export const contentPath = (id: string, file: string) => at(id, `/files/${file}/content`);

export const getStats = (id: string, signal?: AbortSignal) =>
  call<ConversationStats>('GET', at(id, '/stats'), { signal });

export const listPresets = (signal?: AbortSignal) => call<Listing<Preset>>('GET', '/presets', { signal });
