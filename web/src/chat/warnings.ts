import type { Translator } from '@/i18n/translator';

/** A warning's code (`message_elided:7`) in words; a code that the page does not know is shown unchanged. */
export function warningWords(warning: string, word: Translator['word']): string {
  const colon = warning.indexOf(':');
  const code = colon < 0 ? warning : warning.slice(0, colon);
  const what = colon < 0 ? '' : warning.slice(colon + 1);
  const unknown = code.replaceAll('_', ' ');
  const words = word('warning', code);
  if (words === unknown) return warning.replaceAll('_', ' ');
  const told = words.replace('{what}', () => (code.startsWith('compaction_') ? word('reason', what) : what));
  return told.charAt(0).toUpperCase() + told.slice(1);
}
