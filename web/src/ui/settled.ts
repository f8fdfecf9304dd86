'use client';

import { useEffect, useState } from 'react';

const MOMENT = 250;

/** A value once it has not changed for a moment: what is typed is asked for when its word is written, not by the letter. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), MOMENT);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
