/** Puts a text on the clipboard. Over plain http browsers have no `navigator.clipboard`: there a selection is copied. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const put = (event: ClipboardEvent) => {
    event.preventDefault();
    event.clipboardData?.setData('text/plain', text);
  };
  document.addEventListener('copy', put, { once: true });
  document.execCommand('copy');
  document.removeEventListener('copy', put);
}
