/** Pure: why a file was not attached, in words for the user who chose it. */
import { toldOf } from '@/api/client';
import type { Translator } from '@/i18n/translator';
import { errorWords } from '@/ui/error-words';
import { sizeOf } from './sizes';

export function refusalOf(error: unknown, size: number, words: Translator): string {
  const { t, number } = words;
  const told = toldOf(error);
  const known = (told.problem ?? {}) as Record<string, unknown>;
  const given = (name: string) => (typeof known[name] === 'number' ? known[name] : null);
  const [limit, files, tokens] = [given('limit'), given('files'), given('size')];
  switch (told.code) {
    case 'body_too_large':
      return limit === null
        ? t('file_too_large', { size: sizeOf(size, number) })
        : t('file_above_limit', { size: sizeOf(size, number), limit: sizeOf(limit, number) });
    case 'unsupported_media_type':
      return t('file_wrong_type');
    case 'no_room_for_file':
      if (files !== null && limit !== null) return t('file_too_many', { limit });
      if (limit !== null) return t('file_quota', { size: sizeOf(size, number), limit: sizeOf(limit, number) });
      return t('file_no_room', { size: tokens ?? 0, budget: given('budget') ?? 0, present: given('files_tokens') ?? 0 });
    case 'invalid_input': {
      const field = told.problem?.errors?.[0]?.field ?? '';
      if (field === 'Content-Type') return t('file_other_bytes');
      if (field === 'body') return t('file_empty');
      return errorWords(told, words);
    }
    default:
      return errorWords(told, words);
  }
}

/** Whether the same file may be accepted later; a fault of the file itself remains. */
export const mayRepeat = (error: unknown): boolean =>
  !['body_too_large', 'unsupported_media_type', 'invalid_input'].includes(toldOf(error).code);
