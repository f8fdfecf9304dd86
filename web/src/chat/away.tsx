'use client';

import { useEffect, useState } from 'react';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { Notice } from '@/ui/notice';

/** A connection that is lost for a shorter time, in milliseconds, is not worth a word. */
const SHORT = 3_000;

/** Says that nothing new comes at the moment: otherwise an old page would look like a quiet one. */
export function Away() {
  const { t } = useWords();
  const { live } = useConversation();
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    setIsLong(false);
    // A page that nobody sees gives its connection back.
    const timer = live ? undefined : setTimeout(() => setIsLong(!document.hidden), SHORT);
    return () => clearTimeout(timer);
  }, [live]);
  return <div role="status">{isLong && <Notice tone="warn">{t('away')}</Notice>}</div>;
}
