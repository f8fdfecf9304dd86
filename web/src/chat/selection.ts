/**
 * As the `ref` of the running reply: what is selected in it stays selected while its text grows, and when the stored reply,
 * with the same words, replaces it.
 */
export function keepsSelection(reply: HTMLElement): () => void {
  const box = reply.parentElement!;
  const selection = getSelection()!;
  let held: [Node, number, Node, number] | null = null;
  const note = () => {
    const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = selection;
    const isHere = !isCollapsed && reply.contains(anchorNode) && reply.contains(focusNode);
    held = isHere ? [anchorNode!, anchorOffset, focusNode!, focusOffset] : null;
  };
  // In a text that is set anew, only longer, a browser moves both ends of a selection to its beginning.
  const watch = new MutationObserver(() => {
    if (!held || (selection.anchorOffset && selection.focusOffset)) return;
    try {
      selection.setBaseAndExtent(...held);
    } catch {
      // The text has become shorter.
    }
  });
  watch.observe(reply, { subtree: true, characterData: true });
  document.addEventListener('selectionchange', note);
  return () => {
    watch.disconnect();
    document.removeEventListener('selectionchange', note);
    note();
    if (!held) return;
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
