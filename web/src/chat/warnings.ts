import type { Key, Translator } from '@/i18n/translator';

/** A warning's code (`message_elided:7`) in words; one that the page does not know yet as it is. */
export function warningWords(warning: string, t: Translator['t']): string {
  const colon = warning.indexOf(':');
  const code = colon < 0 ? warning : warning.slice(0, colon);
  const what = colon < 0 ? '' : warning.slice(colon + 1);
  const key = `warning_${code}`;
  const words = t(key as Key, { what });
  return words === key ? warning.replaceAll('_', ' ') : words;
}
