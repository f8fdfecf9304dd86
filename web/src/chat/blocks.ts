/**
 * Where Markdown may be cut: into blocks, and within a table that is too long to be set as a whole.
 *
 * `Lexer` replaces `marked`, which cuts Markdown into blocks: those that have not changed are not set again as a reply grows.
 */

/** Shorter blocks would save nothing. */
const LEAST = 2_000;
/** A list above this length is cut between its items. */
const LONG_LIST = 8_000;
/** A longer text with definitions is cut as well: the page does not answer while a block is set. */
const MOST_WHOLE = 40_000;
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const ITEM = /^([-*+]|\d+[.)])\s/;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;
const ROW = /^ {0,3}\|/;
/** More rows of a table are shown when they are asked for: browsers need seconds for thousands. */
const MOST_ROWS = 200;
/** The lines above the rows: names of columns, and the line below them. */
const HEAD = 2;

/** Follows the lines of a Markdown text, and tells of each whether it is in or at the edge of a fenced block. */
function fences(): (line: string) => boolean {
  let fence = '';
  return (line) => {
    const mark = FENCE.exec(line)?.[1];
    const wasOpen = fence !== '';
    if (!fence && mark) fence = mark;
    else if (mark?.startsWith(fence) && line.trim() === mark) fence = '';
    return wasOpen || fence !== '';
  };
}

/** The first table that is too long: where it is cut, where it ends, and how many rows it has; `null` if there is none. */
export function longTable(text: string): { cut: number; end: number; rows: number } | null {
  const isFenced = fences();
  let [place, rows, cut] = [0, 0, 0];
  for (const line of text.split(/(?<=\n)/)) {
    if (!isFenced(line) && ROW.test(line)) {
      if (rows === MOST_ROWS) cut = place;
      rows += 1;
    } else if (rows > MOST_ROWS) break;
    else rows = 0;
    place += line.length;
  }
  return rows > MOST_ROWS ? { cut, end: place, rows: rows - HEAD } : null;
}

/** The signs on which the time to read Markdown depends, with the square of their number in one paragraph. */
const SIGN = /[*_~`[\]=<]|^[-#>]/m;
/** That many take a second or so. Whole tables and lists have fewer. */
const MOST_SIGNS = 4_000;

/** Whether a text would hold the page up as Markdown: nobody writes such a paragraph but to do just that. */
export const isHeavy = (text: string): boolean =>
  text.split(/\n[ \t]*\n/).some((paragraph) => paragraph.split(SIGN).length > MOST_SIGNS);

export class Lexer {
  readonly tokens: { links: Record<string, string> } = { links: {} };

  /** Cuts at blank lines where Markdown begins anew. A text with definitions stays whole, since links refer to them, unless it is long. */
  blockTokens(text: string): { type: string; raw: string }[] {
    if (text.length <= MOST_WHOLE && DEFINITION.test(text)) this.tokens.links = { all: text };
    const blocks: string[] = [''];
    const isFenced = fences();
    let wasFenced = false;
    let isAfterBlank = false;
    for (const line of text.split(/(?<=\n)/)) {
      const { length } = blocks.at(-1)!;
      const begins = ITEM.test(line) ? length >= LONG_LIST : isAfterBlank && length >= LEAST && /^[^\s>]/.test(line);
      if (begins && !wasFenced) blocks.push('');
      wasFenced = isFenced(line);
      isAfterBlank = !line.trim();
      blocks[blocks.length - 1] += line;
    }
    return blocks.map((raw) => ({ type: 'paragraph', raw }));
  }
}
