/** Markers that lead from a text back to a segment: `[topic →L1:segment_id]`. */
const MARKER = /\[([^[\]\n]{1,200}?)\s*→(L[123]):([^\s[\]]{1,160})\]/g;

export interface Piece {
  text: string;
  /** What the marker opens. */
  segment?: string;
  level?: string;
}

/** A text cut at its markers. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const marker of text.matchAll(MARKER)) {
    if (marker.index > end) found.push({ text: text.slice(end, marker.index) });
    found.push({ text: marker[1]!, level: marker[2], segment: marker[3] });
    end = marker.index + marker[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

const LINK = '#segment-';
/**
 * Code, which is passed over, and formulas in TeX. Lines that are set in by four blanks are code behind a paragraph, not in a
 * list or a footnote.
 * What stands in a lookbehind is tried from its end: `^` first, or a long line takes quadratic time.
 * A `$` that only names a price or a variable has a space before it, or a word or code behind it, and in an address brackets may
 * be escaped: `Lock_\(water\)`.
 */
const FORMULA =
  /((`{3,}|~{3,})[^]*?(?:\2|(?![^]))|`+[^`\n]*`+|(?<=(?!(?:[-*+]|\d+[.)]|\[\^[^\]\n]*\]:)[ \t])^\S.*\n[ \t]*\n)(?: {4}|\t).*(?:\n(?: {4}|\t|$).*)*)|(?<!\w)\\\([^]{1,500}?\\\)|^[ \t]*\\\[[^]{1,2000}?\\\][ \t.,;]*$|\$\$[^]{1,2000}?\$\$|(?<![^\s(])\$(?=\S)[^$`\n]*[^\s$`]\$(?!\w)/gm;
const SIGN = /[!-/:-@[-`{-~]/g;

/** Markdown in which each marker is a link, see `segmentOf`, and each formula is text: its signs mean nothing else. */
export function linked(markdown: string): string {
  return markdown
    .replace(FORMULA, (found, code) => code ?? found.replace(SIGN, '\\$&'))
    .replace(
      MARKER,
      (_, topic: string, level: string, id: string) => `[${topic} →${level}](${LINK}${encodeURIComponent(id)})`,
    );
}

export function segmentOf(href: string | undefined): string | null {
  if (!href?.startsWith(LINK)) return null;
  try {
    return decodeURIComponent(href.slice(LINK.length));
  } catch {
    // Somebody else wrote this link.
    return null;
  }
}
