/** Puts a text on the clipboard. Over plain http browsers offer no clipboard to scripts; there a selected text is copied. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'fixed opacity-0';
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
}
