'use client';

import { useEffect, useState } from 'react';
import { useWords } from '@/i18n/provider';

/** Seconds since a moment, without a guess about the rest. Screen readers do not read out each new number. */
export function Elapsed({ since }: { since: number }) {
  const { t, number } = useWords();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span className="tabular-nums" aria-hidden>{t('seconds', { seconds: number(Math.max(0, Math.floor((now - since) / 1000))) })}</span>;
}
