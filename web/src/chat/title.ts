const LONGEST_TITLE = 60;

/** Pure: the first line of the question, cut at a word, and never within a character: no service takes half of one. */
export function titleOf(words: string): string {
  const line = words.trim().split('\n', 1)[0]!;
  if (line.length <= LONGEST_TITLE) return line;
  return `${line.slice(0, LONGEST_TITLE).replace(/\s+\S*$|[\uD800-\uDBFF]$/, '')}…`;
}
