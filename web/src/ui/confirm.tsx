'use client';

import { useState } from 'react';
import { useWords } from '@/i18n/provider';
import { Button } from '@/ui/button';
import { Dialog } from '@/ui/dialog';
import { Failure } from '@/ui/loaded';

interface Props {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  what: string;
  action: string;
  onConfirm: () => Promise<void>;
}

/** Asks before something that cannot be undone. */
export function Confirm({ open, onOpenChange, title, what, action, onConfirm }: Props) {
  const { t } = useWords();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onOpenChange(false);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title={title} description={what}>
      {Boolean(error) && <Failure error={error} />}
      <div className="mt-2 flex justify-end gap-2">
        <Button onClick={() => onOpenChange(false)}>{t('cancel')}</Button>
        <Button look="danger" disabled={busy} onClick={confirm}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
