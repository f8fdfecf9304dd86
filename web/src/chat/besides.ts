/** What belongs to a reply besides its text: passages that were brought back for it, and warnings. */
import type { LiveNotice, Part, RecalledPassage } from './parts';

export interface Besides {
  recalled: RecalledPassage[];
  /** The first words of originals, by `seq:<number>`. */
  titles: Record<string, string>;
  notices: LiveNotice[];
}

export function besidesOf(parts: Part[]): Besides {
  const found: Besides = { recalled: [], titles: {}, notices: [] };
  for (const part of parts) {
    if (part.type === 'recalled') found.recalled.push(...part.data);
    if (part.type === 'notice') found.notices.push(part.data);
    if (part.type === 'source') found.titles[part.id] = part.title;
  }
  return found;
}
