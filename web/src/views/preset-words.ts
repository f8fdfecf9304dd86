import type { Preset } from '@/api/types';
import type { Key, Translator } from '@/i18n/translator';

const KNOWN = ['semantic', 'handoff', 'hierarchical', 'turn_end', 'sessions', 'research'] as const;

/** What a preset does: in the page's language if the page knows the preset, otherwise in the service's words. */
export function presetWhat(t: Translator['t'], preset: Preset): string {
  const known = KNOWN.find((name) => name === preset.name);
  return known ? t(`preset_${known}` satisfies Key) : preset.description;
}
