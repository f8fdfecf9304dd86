/** Replaces `marked`, which cuts Markdown into blocks: those that have not changed are not set again as a reply grows. */

/** Shorter blocks would save nothing. */
const LEAST = 2_000;
/** A list above this length is cut between its items. */
const LONG_LIST = 8_000;
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const ITEM = /^([-*+]|\d+[.)])\s/;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;

export class Lexer {
  readonly tokens: { links: Record<string, string> } = { links: {} };

  /** Cuts at blank lines where Markdown begins anew. A text with definitions stays whole, since links refer to them. */
  blockTokens(text: string): { type: string; raw: string }[] {
    if (DEFINITION.test(text)) this.tokens.links = { all: text };
    const blocks: string[] = [''];
    let fence = '';
    let isAfterBlank = false;
    for (const line of text.split(/(?<=\n)/)) {
      const { length } = blocks.at(-1)!;
      const begins = ITEM.test(line) ? length >= LONG_LIST : isAfterBlank && length >= LEAST && /^[^\s>]/.test(line);
      if (begins && !fence) blocks.push('');
      const mark = FENCE.exec(line)?.[1];
      if (!fence && mark) fence = mark;
      else if (mark?.startsWith(fence) && line.trim() === mark) fence = '';
      isAfterBlank = !line.trim();
      blocks[blocks.length - 1] += line;
    }
    return blocks.map((raw) => ({ type: 'paragraph', raw }));
  }
}
