'use client';

import { History } from 'lucide-react';
import { useState } from 'react';
import { restoreState } from '@/api/resources';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Failure } from '@/ui/loaded';

/** Goes back to a version of the state; asks first. */
export function Restore({ version }: { version: number }) {
  const { t } = useWords();
  const { id, conversation, refresh, setConversation } = useConversation();
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isCurrent = conversation?.state_version === version;

  const restore = async () => {
    setBusy(true);
    setError(null);
    try {
      setConversation(await restoreState(id, version));
      refresh();
      setOpen(false);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };

  return (
    <>
      <Button disabled={isCurrent} onClick={() => setOpen(true)}>
        <History className="size-4" aria-hidden />
        {isCurrent ? t('is_current') : t('restore')}
      </Button>
      <Dialog open={open} onOpenChange={setOpen} title={t('restore_title', { version })} description={t('restore_what')}>
        {Boolean(error) && <Failure error={error} />}
        <div className="mt-2 flex justify-end gap-2">
          <Button onClick={() => setOpen(false)}>{t('cancel')}</Button>
          <Button look="primary" disabled={busy} onClick={restore}>
            {t('restore')}
          </Button>
        </div>
      </Dialog>
    </>
  );
}
