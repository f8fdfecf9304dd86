import type { Preset } from '@/api/types';
import type { Key, Translator } from '@/i18n/translator';

const KNOWN = ['semantic', 'handoff', 'hierarchical', 'turn_end', 'sessions', 'research'] as const;

const known = (preset: Preset) => KNOWN.find((name) => name === preset.name);

/** What a preset does: in the page's language if the page knows the preset, otherwise in the service's words. */
export function presetWhat(t: Translator['t'], preset: Preset): string {
  const name = known(preset);
  return name ? t(`preset_${name}` satisfies Key) : preset.description;
}

/** What people call a preset; its name is for programs. */
export function presetTitle(t: Translator['t'], preset: Preset): string {
  const name = known(preset);
  return name ? t(`preset_title_${name}` satisfies Key) : preset.design;
}
