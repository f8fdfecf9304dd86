/** As a `ref`: what is selected in the running reply stays selected when the stored reply, with the same words, replaces it. */
export function keepsSelection(reply: HTMLElement): () => void {
  const box = reply.parentElement!;
  return () => {
    const selection = getSelection()!;
    if (selection.isCollapsed || !reply.contains(selection.anchorNode) || !reply.contains(selection.focusNode)) return;
    const range = selection.getRangeAt(0).cloneRange();
    const { length } = range.toString();
    range.setStart(reply, 0);
    const read = range.toString();
    queueMicrotask(() => {
      const stored = [...box.querySelectorAll('[data-role=assistant]')].at(-1);
      if (!stored?.textContent.startsWith(read)) return;
      selection.setBaseAndExtent(...placeIn(stored, read.length - length), ...placeIn(stored, read.length));
    });
  };
}

/** Where so many characters of a text end. */
function placeIn(box: Element, count: number): [Node, number] {
  const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  let left = count;
  for (let text = texts.nextNode() as Text | null; text; text = texts.nextNode() as Text | null) {
    if (left <= text.length) return [text, left];
    left -= text.length;
  }
  return [box, 0];
}
