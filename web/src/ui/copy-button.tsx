import { Check, Copy, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useWords } from '@/i18n/provider';
import { Button } from './button';
import { copyText } from './copy';

const SIGNS = { copy: Copy, copied: Check, copy_failed: X };
/** Milliseconds for which the button says what came of a click. */
const TOLD = 2_500;

interface Props {
  /** The text as it is when the button is clicked. */
  text: () => string;
  className?: string;
}

export function CopyButton({ text, className }: Props) {
  const { t } = useWords();
  const [state, setState] = useState<keyof typeof SIGNS>('copy');
  useEffect(() => {
    if (state === 'copy') return undefined;
    const timer = setTimeout(() => setState('copy'), TOLD);
    return () => clearTimeout(timer);
  }, [state]);
  const take = () => {
    copyText(text()).then(
      () => setState('copied'),
      () => setState('copy_failed'),
    );
  };
  const Sign = SIGNS[state];
  return (
    <>
      <Button look="quiet" square aria-label={t('copy')} className={className} onClick={take}>
        <Sign className="size-4" aria-hidden />
      </Button>
      <span role="status" className={state === 'copy_failed' ? 'block text-xs text-bad' : 'sr-only'}>
        {state !== 'copy' && t(state)}
      </span>
    </>
  );
}
