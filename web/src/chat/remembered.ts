/** What came with a reply and is not in the stored message: passages and notices, while the tab is open. */
import type { LiveNotice, RecalledPassage, Reply } from './parts';

export interface Remembered {
  recalled: RecalledPassage[];
  titles: Record<string, string>;
  notices: LiveNotice[];
}

const MOST = 200;
const STORED = 'throughline-replies';
const kept = new Map<string, Remembered>(read());

function read(): [string, Remembered][] {
  if (typeof sessionStorage === 'undefined') return [];
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? '[]') as [string, Remembered][];
  } catch {
    return [];
  }
}

/** What stands beside the text of a reply. */
export function besides(reply: Reply): Remembered {
  const found: Remembered = { recalled: [], titles: {}, notices: [] };
  for (const part of reply.parts) {
    if (part.type === 'recalled') found.recalled.push(...part.data);
    if (part.type === 'notice') found.notices.push(part.data);
    if (part.type === 'source') found.titles[part.id] = part.title;
  }
  return found;
}

export function remember(reply: Reply): void {
  const found = besides(reply);
  if (!found.recalled.length && !found.notices.length) return;
  kept.delete(reply.id);
  kept.set(reply.id, found);
  while (kept.size > MOST) kept.delete(kept.keys().next().value as string);
  try {
    sessionStorage.setItem(STORED, JSON.stringify([...kept]));
  } catch {
    // Storage is full or forbidden: the tab knows it all the same.
  }
}

export function rememberedOf(messageId: string): Remembered | undefined {
  return kept.get(messageId);
}
