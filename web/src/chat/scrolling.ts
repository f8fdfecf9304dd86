'use client';

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';

/** A reader who comes within so many pixels of an end counts as being there. */
const NEAR_END = 48;
/** A reader who was there and moves away by so many pixels wants to read what is above. */
const AWAY = 2;
const NEAR_PAGE = 600;
/** What grows within so many milliseconds after a click on something that opens was opened by it. */
const SOON = 500;

const isNearEnd = (box: HTMLElement, near = NEAR_END): boolean => box.scrollHeight - box.scrollTop - box.clientHeight < near;

interface Given {
  /** Changes whenever what is shown changes. */
  content: unknown;
  onTop: () => void;
  onBottom: () => void;
  atEnd: boolean;
}

interface Scrolling {
  frame: RefObject<HTMLDivElement | null>;
  inner: RefObject<HTMLDivElement | null>;
  isAtBottom: boolean;
  toBottom: () => void;
  /** Show the row of a message in the middle, and stay there. */
  toMessage: (seq: number) => boolean;
}

/**
 * Keeps the reader's place: at the end as long as they are there, otherwise at the message they look at, even
 * if others are added before it or removed.
 */
export function useScrolling({ content, onTop, onBottom, atEnd }: Given): Scrolling {
  const frame = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  /** The place of the frame when it was last scrolled to the end. */
  const taken = useRef(0);
  const held = useRef<{ seq: string; top: number } | null>(null);
  const opened = useRef(-SOON);
  const [isAtBottom, setIsAtBottom] = useState(true);

  const hold = useCallback(() => {
    const box = frame.current;
    if (!box) return;
    const top = box.getBoundingClientRect().top;
    for (const row of box.querySelectorAll<HTMLElement>('[data-seq]')) {
      const place = row.getBoundingClientRect();
      if (place.bottom > top) {
        held.current = { seq: row.dataset.seq!, top: place.top - top };
        return;
      }
    }
  }, []);

  const toEnd = useCallback((box: HTMLElement) => {
    box.scrollTop = box.scrollHeight;
    taken.current = box.scrollTop;
  }, []);

  /**
   * Whether the reader is still at the end. Scrolling is reported only with the next frame, when there may be more to
   * read, or less room for it, so the place is compared.
   */
  const stays = useCallback((box: HTMLElement) => {
    if (isNearEnd(box, AWAY)) taken.current = box.scrollTop;
    return stuck.current && box.scrollTop > taken.current - AWAY;
  }, []);

  const toBottom = useCallback(() => {
    stuck.current = true;
    if (frame.current) toEnd(frame.current);
  }, [toEnd]);

  const toMessage = useCallback(
    (seq: number) => {
      const box = frame.current;
      const row = box?.querySelector<HTMLElement>(`[data-seq="${seq}"]`);
      if (!box || !row) return false;
      stuck.current = false;
      const offset = row.getBoundingClientRect().top - box.getBoundingClientRect().top;
      box.scrollTop += offset - box.clientHeight / 4;
      hold();
      return true;
    },
    [hold],
  );

  useEffect(() => {
    const box = frame.current;
    if (!box) return;
    const onScroll = () => {
      stuck.current = atEnd && (stays(box) || (box.scrollTop >= taken.current && isNearEnd(box)));
      setIsAtBottom(stuck.current);
      hold();
      if (box.scrollTop < NEAR_PAGE) onTop();
      if (isNearEnd(box, NEAR_PAGE) && !atEnd) onBottom();
    };
    // Who came to the top while something else was loading gets the page before once that is done.
    if (!stuck.current && box.scrollTop < NEAR_PAGE) onTop();
    box.addEventListener('scroll', onScroll, { passive: true });
    return () => box.removeEventListener('scroll', onScroll);
  }, [atEnd, hold, onBottom, onTop, stays]);

  useLayoutEffect(() => {
    const box = frame.current;
    if (!box) return;
    if (stuck.current) {
      if (stays(box)) toEnd(box);
      return;
    }
    const row = held.current && box.querySelector<HTMLElement>(`[data-seq="${held.current.seq}"]`);
    if (!row || !held.current) return;
    const moved = row.getBoundingClientRect().top - box.getBoundingClientRect().top - held.current.top;
    if (moved) box.scrollTop += moved;
  }, [content, stays, toEnd]);

  useEffect(() => {
    const box = inner.current;
    if (!box) return;
    const onClick = (event: MouseEvent) => {
      if ((event.target as Element).closest('summary, [aria-expanded]')) opened.current = performance.now();
    };
    // Text that grows moves the end, and so does a field below that takes more lines. Something that the reader opens does not: they read it from its beginning.
    const observer = new ResizeObserver(() => {
      if (!frame.current) return;
      if (performance.now() - opened.current < SOON) {
        stuck.current = atEnd && isNearEnd(frame.current);
        setIsAtBottom(stuck.current);
      } else if (stays(frame.current)) toEnd(frame.current);
    });
    observer.observe(box);
    if (frame.current) observer.observe(frame.current);
    box.addEventListener('click', onClick);
    return () => {
      observer.disconnect();
      box.removeEventListener('click', onClick);
    };
  }, [atEnd, stays, toEnd]);

  return { frame, inner, isAtBottom, toBottom, toMessage };
}
