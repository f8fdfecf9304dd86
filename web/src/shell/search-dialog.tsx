'use client';

import { useState } from 'react';
import { searchMessages } from '@/api/resources';
import type { Listing, SearchHit } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { useOpener } from '@/state/opener';
import { Dialog } from '@/ui/dialog';
import { Field } from '@/ui/field';
import { More, Shown, useFurther, useLoaded, Waiting } from '@/ui/loaded';
import { useSettled } from '@/ui/settled';
import { foundIn } from './found';

const NOTHING: Listing<SearchHit> = { data: [], next_cursor: null, has_more: false };

/** Looks through the originals; a hit opens its message. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const { t, word, date } = useWords();
  const { id } = useConversation();
  const opener = useOpener();
  const [text, setText] = useState('');
  const wanted = useSettled(text.trim());
  const found = useLoaded(
    async (signal) => ({ wanted, ...(wanted ? await searchMessages(id, wanted, null, signal) : NOTHING) }),
    [id, wanted],
  );
  const hits = useFurther(found.value, (after) => searchMessages(id, found.value?.wanted ?? '', after));
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={t('search_messages')} toType>
      <Field label={t('search_messages')} hideLabel type="search" value={text} onChange={setText} placeholder={t('search_words')} maxLength={1000} />
      <div className="mt-3 min-h-24">
        <Shown of={found}>
          {({ wanted: sought }) =>
            found.loading && hits.items.length === 0 ? (
              <Waiting />
            ) : sought && hits.items.length === 0 ? (
              <p className="text-sm text-soft">{t('nothing_found')}</p>
            ) : (
              <ul className="space-y-1">
                {hits.items.map((hit) => (
                  <li key={hit.message_id}>
                    <button
                      type="button"
                      className="block w-full rounded-xl px-3 py-2 text-left text-sm hover:bg-raised"
                      onClick={() => {
                        onClose();
                        opener.message(hit.seq);
                      }}
                    >
                      <span className="block text-xs text-soft">
                        #{hit.seq} · {word('role', hit.role)} · {date(hit.created_at)}
                      </span>
                      <span className="line-clamp-3">
                        {foundIn(hit.snippet, sought).map(([text, isFound], place) =>
                          isFound ? (
                            <mark key={place} className="rounded-sm bg-accent-wash font-medium text-ink">
                              {text}
                            </mark>
                          ) : (
                            text
                          ),
                        )}
                      </span>
                    </button>
                  </li>
                ))}
              </ul>
            )
          }
        </Shown>
        <More of={hits} />
      </div>
    </Dialog>
  );
}
