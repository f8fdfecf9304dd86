/** Pure: the type under which a file is sent, and what must be known about it. */

/** Text files for which browsers have no type or another one, by the endings of their names. */
const TEXTS: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  htm: 'text/html',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  md: 'text/markdown',
  toml: 'application/toml',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
};
const PLAIN = new Set(
  (
    'adoc bat c cfg conf cpp cs css cts diff env go h hpp ini java jsx kt less lock log lua markdown mjs mts patch php pl' +
    ' properties proto ps1 py r rb rs rst scala scss sh sql srt svg swift tex text ts tsv tsx txt vtt vue'
  ).split(' '),
);

/** The types that browsers give to unknown files. */
const UNKNOWN = 'application/octet-stream';

/** The media type under which a file is sent to the service; an unknown file is tried as a text. */
export function typeOf(name: string, told: string): string {
  const end = name.includes('.') ? name.slice(name.lastIndexOf('.') + 1).toLowerCase() : '';
  if (end in TEXTS) return TEXTS[end]!;
  if (PLAIN.has(end) || told.startsWith('text/')) return 'text/plain';
  return told && told !== UNKNOWN ? told : 'text/plain';
}

/** Whether people must state a file's weight: its bytes do not show how long a sound or a film lasts. */
export const needsTokens = (type: string): boolean => /^(audio|video)\//.test(type);

const LONGEST_NAME = 255;

/** A name that the service accepts: printable and not too long. Its ending stays, which shows its type. */
export function nameOf(name: string): string {
  const printable = name.replace(/\p{C}|\p{Zl}|\p{Zp}/gu, '').trim() || 'file';
  return printable.length <= LONGEST_NAME ? printable : `${printable.slice(0, 200)}…${printable.slice(-40)}`;
}
