'use client';

import { createContext, type ReactNode, useContext } from 'react';

/** What any part of the page can open: an original in the history, a segment, or two states next to each other. */
export interface Opener {
  message: (seq: number) => void;
  segment: (id: string) => void;
}

const Context = createContext<Opener | null>(null);

export function OpenerProvider({ value, children }: { value: Opener; children: ReactNode }) {
  return <Context.Provider value={value}>{children}</Context.Provider>;
}

export function useOpener(): Opener {
  const opener = useContext(Context);
  if (!opener) throw new Error('no opener');
  return opener;
}
