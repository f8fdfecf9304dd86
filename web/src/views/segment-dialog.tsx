'use client';

import { useEffect, useState } from 'react';
import { expandSegment, type Level } from '@/api/resources';
import type { Segment } from '@/api/types';
import { LongText } from '@/chat/long-text';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { useOpener } from '@/state/opener';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Failure } from '@/ui/loaded';
import { Spinner } from '@/ui/spinner';

const LEVELS: { level: Level; name: string }[] = [
  { level: 'full', name: 'full' },
  { level: 'detailed', name: 'L1' },
  { level: 'brief', name: 'L2' },
  { level: 'tags', name: 'L3' },
];

/** What a marker stands for, at each level of detail; the full level has the messages themselves. */
export default function SegmentDialog({ segment, onClose }: { segment: string; onClose: () => void }) {
  const { t, word } = useWords();
  const { id } = useConversation();
  const opener = useOpener();
  const [level, setLevel] = useState<Level>('full');
  const [found, setFound] = useState<Segment | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  useEffect(() => {
    const control = new AbortController();
    setBusy(true);
    setError(null);
    expandSegment(id, segment, { level }, control.signal)
      .then(setFound, (failure) => !control.signal.aborted && setError(failure))
      .finally(() => !control.signal.aborted && setBusy(false));
    return () => control.abort();
  }, [id, segment, level]);

  const more = async () => {
    if (!found?.next_cursor) return;
    setError(null);
    try {
      const page = await expandSegment(id, segment, { level, after: found.next_cursor });
      setFound((now) => (now === found ? { ...page, messages: [...found.messages, ...page.messages] } : now));
    } catch (failure) {
      setError(failure);
    }
  };

  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} wide title={found?.topic ?? segment}>
      <div className="flex flex-wrap gap-1.5" role="group" aria-label={t('level')}>
        {LEVELS.map((one) => (
          <Button
            key={one.level}
            aria-pressed={level === one.level}
            look={level === one.level ? 'primary' : 'plain'}
            onClick={() => setLevel(one.level)}
          >
            {one.level === 'full' ? t('level_full') : word('level', one.name)}
          </Button>
        ))}
        {busy && <Spinner className="size-4 self-center" />}
      </div>
      <div className="mt-4 text-sm">
        {Boolean(error) && <Failure error={error} />}
        {found && found.level === 'full' && (
          <ul className="space-y-3">
            {found.messages.map((message) => (
              <li key={message.id}>
                <button type="button" className="text-xs text-accent hover:underline" onClick={() => opener.message(message.seq)}>
                  #{message.seq} {word('role', message.role)}
                </button>
                <LongText text={message.content} />
              </li>
            ))}
          </ul>
        )}
        {found && found.level !== 'full' && (
          <LongText key={found.level} text={found.content} />
        )}
        {found?.next_cursor && (
          <Button className="mt-3" onClick={() => void more()}>
            {t('more_of_it')}
          </Button>
        )}
      </div>
    </Dialog>
  );
}
