'use client';

import { useWords } from '@/i18n/provider';
import { giveBack, keepDraft, useDraft } from '@/state/drafts';
import { useNavigation } from '@/state/navigation';
import { Button } from '@/ui/button';
import { LongText } from './long-text';

/** What was written for a conversation that was deleted meanwhile, with a way to send it all the same. */
export function LeftDraft({ conversation }: { conversation: string }) {
  const { t } = useWords();
  const { open } = useNavigation();
  const draft = useDraft(conversation);
  if (!draft.trim()) return null;
  const move = () => {
    giveBack(null, draft);
    keepDraft(conversation, '');
    open({ conversation: null, view: 'chat' });
  };
  return (
    <section className="mx-auto w-full max-w-3xl space-y-3 rounded-2xl border border-line bg-surface p-4" data-testid="left-draft">
      <h2 className="text-sm font-semibold">{t('left_draft')}</h2>
      <LongText text={draft} />
      <Button look="primary" onClick={move}>
        {t('left_draft_move')}
      </Button>
    </section>
  );
}
