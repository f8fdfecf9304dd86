'use client';

import { useState } from 'react';
import { useWords } from '@/i18n/provider';
import { Button } from '@/ui/button';
import { MarkedText } from './marked-text';

export const MOST_SHOWN = 20_000;

/** A text; of a very long one only the beginning is shown, until more is asked for. */
export function LongText({ text, most = MOST_SHOWN }: { text: string; most?: number }) {
  const { t, number } = useWords();
  const [whole, setWhole] = useState(false);
  const isCut = !whole && text.length > most;
  return (
    <p className="whitespace-pre-wrap">
      <MarkedText text={isCut ? text.slice(0, most) : text} />
      {isCut && (
        <>
          {'… '}
          <Button onClick={() => setWhole(true)}>{t('show_whole', { count: number(text.length) })}</Button>
        </>
      )}
    </p>
  );
}
