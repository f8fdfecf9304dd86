'use client';

import { useEffect, useRef } from 'react';

/** Files that are pasted, or dropped anywhere; otherwise a browser would open a dropped file instead of the page. */
export function useGivenFiles(onFiles: (files: File[]) => void): void {
  const taker = useRef(onFiles);
  taker.current = onFiles;
  useEffect(() => {
    const over = (event: DragEvent) => event.dataTransfer?.types.includes('Files') && event.preventDefault();
    const take = (event: DragEvent | ClipboardEvent) => {
      const given = 'dataTransfer' in event ? event.dataTransfer : event.clipboardData;
      // Something copied from a table also comes as a picture, but its text is wanted.
      if (event.defaultPrevented || !given?.files.length || given.types.includes('text/plain')) return;
      event.preventDefault();
      taker.current([...given.files]);
    };
    const ending = new AbortController();
    const { signal } = ending;
    window.addEventListener('dragover', over, { signal });
    window.addEventListener('drop', take, { signal });
    window.addEventListener('paste', take, { signal });
    return () => ending.abort();
  }, []);
}
