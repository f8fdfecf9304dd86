/** Pure: a stretch of a history that grows at one side and is cut at the other. */
import type { Message } from '@/api/types';

export interface Stretch {
  messages: Message[];
  /** Whether it begins with the first message, and ends with the last one. */
  atStart: boolean;
  atEnd: boolean;
}

interface Joint {
  side: 'older' | 'newer';
  /** Whether the history continues after the page. */
  more: boolean;
  most: number;
}

/** The stretch with a page next to it, each message once; at most so many, those at the page's side. */
export function adjoin(stretch: Stretch, page: Message[], { side, more, most }: Joint): Stretch {
  const known = new Set(stretch.messages.map((message) => message.seq));
  const fresh = page.filter((message) => !known.has(message.seq));
  if (side === 'older') {
    const all = [...fresh, ...stretch.messages];
    return { messages: all.slice(0, most), atStart: !more, atEnd: stretch.atEnd && all.length <= most };
  }
  const all = [...stretch.messages, ...fresh];
  return { messages: all.slice(-most), atStart: stretch.atStart && all.length <= most, atEnd: !more };
}
