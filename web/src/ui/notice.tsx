import { CircleAlert, Info, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { classes } from './classes';

type Tone = 'info' | 'warn' | 'bad';

const LOOKS: Record<Tone, string> = {
  info: 'bg-raised text-soft',
  warn: 'bg-warn-wash text-warn',
  bad: 'bg-bad-wash text-bad',
};
const ICONS = { info: Info, warn: TriangleAlert, bad: CircleAlert };

export function Notice({ tone = 'info', children }: { tone?: Tone; children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <div
      role={tone === 'bad' ? 'alert' : undefined}
      className={classes('flex items-start gap-2 rounded-xl px-3 py-2 text-sm', LOOKS[tone])}
    >
      <Icon className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
}
