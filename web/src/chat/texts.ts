/** Pure: what a stored message says. */
import type { Message } from '@/api/types';

const IN_WORD = /[\p{L}\p{N}]/u;

/** The content and the texts among the parts, each once. The content of a tool's message only repeats its result. */
export function textsOf({ role, content, parts }: Pick<Message, 'role' | 'content' | 'parts'>): string[] {
  const isResult = role === 'tool' && parts.some((part) => part.type === 'tool_result');
  const texts = parts.flatMap((part) => (part.type === 'text' && typeof part.text === 'string' ? [part.text] : []));
  return [isResult ? '' : content, ...texts.filter((text) => !hasWords(content, text))].filter((text) => text.trim());
}

/** Whether a text holds another one as whole words: "blue" is none of those of "blueberries". */
function hasWords(text: string, other: string): boolean {
  for (let at = text.indexOf(other); at >= 0; at = text.indexOf(other, at + 1)) {
    const isWithin = (inner: string | undefined, outer: string | undefined) => IN_WORD.test(inner ?? '') && IN_WORD.test(outer ?? '');
    if (!isWithin(other[0], text[at - 1]) && !isWithin(other.at(-1), text[at + other.length])) return true;
  }
  return false;
}
