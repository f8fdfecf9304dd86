import type { ReactNode } from 'react';
import { classes } from './classes';

type Tone = 'plain' | 'accent' | 'warn' | 'bad';

const TONES: Record<Tone, string> = {
  plain: 'border-line bg-raised text-soft',
  accent: 'border-transparent bg-accent-wash text-accent',
  warn: 'border-transparent bg-warn-wash text-warn',
  bad: 'border-transparent bg-bad-wash text-bad',
};

export function Chip({ children, tone = 'plain', title }: { children: ReactNode; tone?: Tone; title?: string }) {
  return (
    <span
      title={title}
      className={classes(
        'inline-flex max-w-full items-center gap-1 rounded-full border px-2 py-px text-xs leading-5 font-medium',
        TONES[tone],
      )}
    >
      {children}
    </span>
  );
}
