import { plain } from './plain';

const WORD = /[\p{L}\p{N}]+/gu;
const IN_WORD = /[\p{L}\p{N}]/u;
/** Scripts without capitals: some of them write words without a gap between. */
const JOINED = /\p{Lo}/u;

/** The pieces of a text, and of each whether it is what was searched for: the beginning of a word, or any place where scripts join words. */
export function foundIn(text: string, sought: string): [string, boolean][] {
  let folded = '';
  /** Where each character of the folded text begins in the text. */
  const begins: number[] = [];
  let place = 0;
  for (const character of text) {
    const letters = plain(character);
    for (let letter = 0; letter < letters.length; letter += 1) begins.push(place);
    folded += letters;
    place += character.length;
  }
  begins.push(text.length);
  const isFound = new Array<boolean>(text.length).fill(false);
  for (const [word] of plain(sought).matchAll(WORD)) {
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + 1)) {
      if (JOINED.test(word) || !IN_WORD.test(folded[at - 1] ?? ' ')) isFound.fill(true, begins[at], begins[at + word.length]);
    }
  }
  const pieces: [string, boolean][] = [];
  for (let start = 0, end = 1; end <= text.length; end += 1) {
    if (end < text.length && isFound[end] === isFound[start]) continue;
    pieces.push([text.slice(start, end), isFound[start] ?? false]);
    start = end;
  }
  return pieces;
}
