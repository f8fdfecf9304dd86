'use client';

import { useEffect, useRef } from 'react';

/**
 * What lies over the page, a dialog or a sheet, has an entry of its own in the browser's history, so that "back" closes
 * it before it leaves the place below. Such an entry has its panel's number in its state, and the address of the place.
 */
const MARK = 'throughlinePanel';
/** The panels that are open, the uppermost last. */
let opened: { number: number; close: () => void }[] = [];
/** Greater than those of entries that a page left behind before it was loaded again. */
let numbers = Date.now();

const markOf = (): number | undefined => (window.history.state as Record<string, number> | null)?.[MARK];
const isOpen = (number: number | undefined): boolean => opened.some((one) => one.number === number);

/** The state by which the browser's present entry is known as a panel's, if it is. */
export const markHere = (): Record<string, number> | null => (isAtPanel() ? { [MARK]: markOf()! } : null);

/** Whether the entry in which the browser is was made for a panel. */
export const isAtPanel = (): boolean => markOf() !== undefined;

/** Close the panel by "back" too, as long as it is open. */
export function useBackCloses(open: boolean, close: () => void): void {
  const closing = useRef(close);
  closing.current = close;
  useEffect(() => {
    if (!open) return;
    const number = (numbers += 1);
    // The entry of a panel that was closed just now is taken over.
    const how = isAtPanel() && !isOpen(markOf()) ? 'replaceState' : 'pushState';
    window.history[how]({ [MARK]: number }, '', window.location.href);
    opened.push({ number, close: () => closing.current() });
    if (opened.length === 1) window.addEventListener('popstate', closeAbove);
    return () => {
      opened = opened.filter((one) => one.number !== number);
      if (!opened.length) window.removeEventListener('popstate', closeAbove);
      // If it is closed in another way, nothing is left to go back to; another place may have taken its entry.
      setTimeout(() => markOf() === number && window.history.back());
    };
  }, [open]);
}

/** "Back" came to the place below the panels, or to one of them. */
function closeAbove(): void {
  const mark = markOf() ?? 0;
  for (const one of opened.filter(({ number }) => number > mark)) one.close();
}
