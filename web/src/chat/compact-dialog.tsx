'use client';

import { type FormEvent, useState } from 'react';
import { compact } from '@/api/resources';
import type { Compaction } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Field } from '@/ui/field';
import { Failure } from '@/ui/loaded';
import { Notice } from '@/ui/notice';
import { Elapsed } from './elapsed';

export function CompactDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const { t, word, number, seconds } = useWords();
  const { id, refresh } = useConversation();
  const [focus, setFocus] = useState('');
  const [since, setSince] = useState<number | null>(null);
  const [done, setDone] = useState<Compaction | null>(null);
  const [error, setError] = useState<unknown>(null);

  const change = (next: boolean) => {
    onOpenChange(next);
    if (!next) {
      setDone(null);
      setError(null);
    }
  };
  const run = async (event: FormEvent) => {
    event.preventDefault();
    setSince(Date.now());
    setError(null);
    setDone(null);
    try {
      const made = await compact(id, focus.trim() || null);
      refresh();
      if (made.status === 'applied') change(false);
      else setDone(made);
    } catch (failure) {
      setError(failure);
    } finally {
      setSince(null);
    }
  };

  return (
    <Dialog open={open} onOpenChange={change} title={t('compact_title')} description={t('compact_what')}>
      <form onSubmit={run} className="space-y-3">
        <Field label={t('focus')} hint={t('focus_what')} value={focus} onChange={setFocus} maxLength={500} />
        {Boolean(error) && <Failure error={error} />}
        {done && (
          <Notice tone={done.status === 'skipped' ? 'info' : 'warn'}>
            <p className="first-letter:uppercase">
              {word('status', done.status)}
              {done.reason && `: ${word('reason', done.reason)}`}
              {done.tokens_before !== null && done.tokens_after !== null && done.duration_ms !== null && (
                <> ({t('from_to', { before: number(done.tokens_before), after: number(done.tokens_after), seconds: seconds(done.duration_ms) })})</>
              )}
              {'. '}
              {t('nothing_lost')}
            </p>
          </Notice>
        )}
        <div className="flex items-center justify-end gap-3">
          {since !== null && (
            <span className="text-sm text-soft" role="status">
              {t('compacting')} <Elapsed since={since} />
            </span>
          )}
          <Button type="submit" look="primary" disabled={since !== null}>
            {t('compact_now')}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
