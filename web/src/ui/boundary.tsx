'use client';

import { Component, type ReactNode } from 'react';
import { useWords } from '@/i18n/provider';
import { Button } from './button';
import { Notice } from './notice';

interface Props {
  children: ReactNode;
  /** What is shown then, in place of a message. */
  instead?: ReactNode;
}

/** If one part of the page fails (because a file of an older build is gone, for example), the others stay. */
export class Boundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    return this.state.failed ? (this.props.instead ?? <Failed />) : this.props.children;
  }
}

export function Failed({ onRetry }: { onRetry?: () => void }) {
  const { t } = useWords();
  return (
    <div className="p-4">
      <Notice tone="bad">
        {t('part_failed')}{' '}
        {onRetry && (
          <Button className="mr-2 text-ink" onClick={onRetry}>
            {t('again')}
          </Button>
        )}
        <Button className="text-ink" onClick={() => window.location.reload()}>
          {t('reload')}
        </Button>
      </Notice>
    </div>
  );
}
