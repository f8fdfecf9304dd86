'use client';

import { History } from 'lucide-react';
import { useState } from 'react';
import { restoreState } from '@/api/resources';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { Button } from '@/ui/button';
import { Confirm } from '@/ui/confirm';

/** Goes back to a version of the state, after asking for confirmation. */
export function Restore({ version, onRestored }: { version: number; onRestored?: () => void }) {
  const { t } = useWords();
  const { id, conversation, refresh, setConversation } = useConversation();
  const [open, setOpen] = useState(false);
  const isCurrent = conversation?.state_version === version;
  const restore = async () => {
    setConversation(await restoreState(id, version));
    refresh();
    onRestored?.();
  };

  return (
    <>
      <Button disabled={isCurrent} onClick={() => setOpen(true)}>
        <History className="size-4" aria-hidden />
        {isCurrent ? t('is_current') : t('restore')}
      </Button>
      <Confirm
        open={open}
        onOpenChange={setOpen}
        title={t('restore_title', { version })}
        what={t('restore_what')}
        action={t('restore')}
        look="primary"
        onConfirm={restore}
      />
    </>
  );
}
