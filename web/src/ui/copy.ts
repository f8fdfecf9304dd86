import { ApiError } from '@/api/client';

/**
 * Puts a text on the clipboard. Over plain http browsers offer no clipboard to scripts, and elsewhere they may refuse it;
 * then a selected text is copied. Throws `ApiError`.
 */
export async function copyText(text: string): Promise<void> {
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  if (!isCopied && !copySelected(text)) throw new ApiError(0, 'copy_failed', 'copy_failed');
}

function copySelected(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'fixed opacity-0';
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}
