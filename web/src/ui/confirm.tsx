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
  look?: 'danger' | 'primary';
  onConfirm: () => Promise<void>;
}

/** Asks for confirmation before something with large effects. */
export function Confirm({ open, onOpenChange, title, what, action, look = 'danger', onConfirm }: Props) {
  const { t } = useWords();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const change = (next: boolean) => {
    setError(null);
    onOpenChange(next);
  };
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      change(false);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    // What is being done is not taken back by closing this, and whether it failed is told here.
    <Dialog open={open} onOpenChange={(next) => busy || change(next)} title={title} description={what}>
      {Boolean(error) && <Failure error={error} />}
      <div className="mt-2 flex justify-end gap-2">
        <Button disabled={busy} onClick={() => change(false)}>
          {t('cancel')}
        </Button>
        <Button look={look} disabled={busy} onClick={confirm}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
