/** A reply as it comes: those parts of the AI SDK's UI message stream (version 1) that the service sends. */
import type { Gauge } from '@/api/types';

export interface RecalledPassage {
  segment_id: string | null;
  level: string;
  seqs: number[];
}

export interface LiveCompaction {
  status: string;
  trigger: string;
  from_seq: number | null;
  to_seq: number | null;
  messages_covered: number;
  tokens_before: number | null;
  tokens_after: number | null;
  duration_ms: number | null;
}

export interface LiveNotice {
  level: string;
  code: string;
  message: string;
}

export type Part =
  | { type: 'text' | 'reasoning'; id: string; text: string }
  | { type: 'tool'; id: string; name: string; input: unknown; output?: unknown; error?: string }
  | { type: 'source'; id: string; title: string }
  | { type: 'compaction'; id: string; data: LiveCompaction }
  | { type: 'recalled'; id: string; data: RecalledPassage[] }
  | { type: 'notice'; id: string; data: LiveNotice };

export interface Reply {
  id: string;
  parts: Part[];
}

export type Chunk = { type: string } & Record<string, unknown>;

export const EMPTY: Reply = { id: '', parts: [] };

/** The reply with one more chunk; chunks about other things do not change it. */
export function grown(reply: Reply, chunk: Chunk): Reply {
  const id = String(chunk.id ?? chunk.toolCallId ?? chunk.sourceId ?? '');
  switch (chunk.type) {
    case 'start':
      return chunk.messageId ? { ...reply, id: String(chunk.messageId) } : reply;
    case 'text-start':
    case 'reasoning-start':
      return { ...reply, parts: [...reply.parts, { type: kindOf(chunk), id, text: '' }] };
    case 'text-delta':
    case 'reasoning-delta':
      return longer(reply, kindOf(chunk), id, String(chunk.delta ?? ''));
    case 'tool-input-start':
      return put(reply, { type: 'tool', id, name: String(chunk.toolName), input: undefined });
    case 'tool-input-available':
      return put(reply, { type: 'tool', id, name: String(chunk.toolName), input: chunk.input });
    case 'tool-output-available':
      return told(reply, id, { output: chunk.output });
    case 'tool-output-error':
      return told(reply, id, { error: String(chunk.errorText) });
    case 'source-document':
      return put(reply, { type: 'source', id, title: String(chunk.title ?? '') });
    case 'data-compaction':
      return put(reply, { type: 'compaction', id, data: chunk.data as LiveCompaction });
    case 'data-recalled':
      return put(reply, { type: 'recalled', id, data: chunk.data as RecalledPassage[] });
    case 'data-notice':
      return put(reply, { type: 'notice', id: id || String(reply.parts.length), data: chunk.data as LiveNotice });
    default:
      return reply;
  }
}

const kindOf = (chunk: Chunk): 'text' | 'reasoning' => (chunk.type.startsWith('text') ? 'text' : 'reasoning');

/** The newest part with an id grows; an id may be used again once its part is closed. */
function longer(reply: Reply, type: 'text' | 'reasoning', id: string, delta: string): Reply {
  const place = reply.parts.findLastIndex((part) => part.type === type && part.id === id);
  const part = reply.parts[place];
  if (!part || !('text' in part)) return reply;
  return { ...reply, parts: reply.parts.with(place, { ...part, text: part.text + delta }) };
}

/** A part of the same kind and id is replaced. */
function put(reply: Reply, part: Part): Reply {
  const place = reply.parts.findIndex((one) => one.type === part.type && one.id === part.id);
  return { ...reply, parts: place < 0 ? [...reply.parts, part] : reply.parts.with(place, part) };
}

function told(reply: Reply, id: string, result: { output?: unknown; error?: string }): Reply {
  const part = reply.parts.find((one) => one.type === 'tool' && one.id === id);
  return part?.type === 'tool' ? put(reply, { ...part, ...result }) : reply;
}

export interface Handlers {
  /** The service has what was sent. */
  onArrived: () => void;
  onReply: (reply: Reply) => void;
  onGauge: (gauge: Gauge) => void;
}
