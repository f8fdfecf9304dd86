'use client';

import { useState } from 'react';

const held = new Map<string, string>();

/** A field's text that is not saved yet: it outlives its form, which is removed with its view. */
export function useHeld(name: string, saved: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => held.get(name) ?? saved);
  const change = (next: string) => {
    if (next === saved) held.delete(name);
    else held.set(name, next);
    setText(next);
  };
  return [text, change];
}

/** What stands in a field and is not saved; empty if all is. */
export const heldText = (name: string): string => held.get(name) ?? '';

/** The fields were saved. */
export function forgetHeld(...names: string[]): void {
  for (const name of names) held.delete(name);
}

/** Whether one of the fields is not saved. */
export const areHeld = (names: string[]): boolean => names.some((name) => held.has(name));
