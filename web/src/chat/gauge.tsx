'use client';

import { TriangleAlert } from 'lucide-react';
import type { Gauge } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { classes } from '@/ui/classes';
import { Popover } from '@/ui/popover';
import { isPressing, PARTS, slicesOf, ticksOf } from './gauge-parts';

/** How full the context is: a stacked bar with both thresholds, or a ring if there is little room. */
export function GaugeMeter({ gauge }: { gauge: Gauge }) {
  const { t, percent, number } = useWords();
  const said = useGaugeText(gauge);
  return (
    <Popover
      label={t('gauge_title')}
      trigger={
        <button
          type="button"
          data-testid="gauge"
          className="group flex min-w-0 flex-1 items-center gap-2.5 rounded-lg px-1.5 py-1 text-left text-xs text-soft hover:bg-raised"
        >
          <span className="sr-only">{`${said.title}. ${said.until}`}</span>
          <Ring gauge={gauge} className="sm:hidden" />
          <span className="hidden min-w-24 flex-1 sm:block">
            <Bar gauge={gauge} />
          </span>
          <span className="min-w-0 tabular-nums sm:truncate" aria-hidden>
            {isPressing(gauge) && <TriangleAlert className="mr-1 inline size-3.5 align-[-2px] text-warn" aria-hidden />}
            <b className="font-semibold text-ink">{percent(gauge.utilization)}</b>
            <span className="hidden lg:inline">
              {' · '}
              {number(gauge.tokens)} / {number(gauge.budget)}
            </span>
            {' · '}
            {said.until}
          </span>
        </button>
      }
    >
      <GaugeDetails gauge={gauge} />
    </Popover>
  );
}

function useGaugeText(gauge: Gauge): { title: string; until: string } {
  const { t, percent, number, word } = useWords();
  const left = gauge.tokens_until_compaction;
  const until =
    left === null || left === undefined || left <= 0
      ? word('gauge', gauge.status)
      : t('until_compaction', { count: left });
  return {
    title: t('gauge_said', {
      percent: percent(gauge.utilization),
      tokens: number(gauge.tokens),
      budget: number(gauge.budget),
    }),
    until,
  };
}

export function Bar({ gauge, tall = false }: { gauge: Gauge; tall?: boolean }) {
  return (
    <span className={classes('relative block', tall ? 'py-2' : 'py-1')} aria-hidden>
      <span
        className={classes('flex w-full overflow-hidden rounded-full bg-raised ring-1 ring-line ring-inset', tall ? 'h-3' : 'h-2')}
      >
        {slicesOf(gauge).map((slice) => (
          <span
            key={slice.part}
            className="h-full border-r border-surface transition-[width] duration-300 last:border-0"
            style={{ width: `${slice.width}%`, background: `var(--part-${slice.part})` }}
          />
        ))}
      </span>
      {ticksOf(gauge).map((tick) => (
        <span
          key={tick.name}
          className={classes(
            'absolute inset-y-0 w-0.5 -translate-x-1/2 rounded-full',
            tick.name === 'background' ? 'bg-soft' : 'bg-ink',
          )}
          style={{ left: `${tick.at}%` }}
        />
      ))}
    </span>
  );
}

function Ring({ gauge, className }: { gauge: Gauge; className?: string }) {
  const share = Math.min(1, gauge.utilization) * 100;
  return (
    <svg viewBox="0 0 36 36" className={classes('size-5 shrink-0 -rotate-90', className)} aria-hidden>
      <circle cx="18" cy="18" r="15" fill="none" stroke="var(--line)" strokeWidth="5" />
      <circle
        cx="18"
        cy="18"
        r="15"
        fill="none"
        stroke={isPressing(gauge) ? 'var(--warn)' : 'var(--accent)'}
        strokeWidth="5"
        strokeLinecap="round"
        pathLength="100"
        strokeDasharray={`${share} 100`}
      />
    </svg>
  );
}

/** The parts by name and number, the same as the bar but without colours. */
export function GaugeDetails({ gauge }: { gauge: Gauge }) {
  const { t, number, percent, word } = useWords();
  const said = useGaugeText(gauge);
  const shown = PARTS.filter((part) => gauge.breakdown[part] > 0);
  return (
    <div className="text-sm">
      <p className="font-semibold">{said.title}</p>
      <p className={classes('mt-0.5', isPressing(gauge) ? 'text-warn' : 'text-soft')}>{said.until}</p>
      <div className="mt-2">
        <Bar gauge={gauge} tall />
      </div>
      <table className="mt-2 w-full tabular-nums">
        <caption className="sr-only">{t('gauge_parts')}</caption>
        <thead className="sr-only">
          <tr>
            <th scope="col">{t('part')}</th>
            <th scope="col">{t('tokens_heading')}</th>
            <th scope="col">{t('share')}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((part) => (
            <tr key={part} className="align-top">
              <th scope="row" className="py-1 pr-2 text-left font-normal">
                <span
                  className="mr-2 inline-block size-2.5 rounded-sm"
                  style={{ background: `var(--part-${part})` }}
                  aria-hidden
                />
                {word('part', part)}
                <span className="block pl-[1.125rem] text-xs text-soft">
                  {part === 'pending' ? t('pending_what') : word('what', part)}
                </span>
              </th>
              <td className="py-1 text-right">{number(gauge.breakdown[part])}</td>
              <td className="w-12 py-1 pl-2 text-right text-soft">
                {percent(gauge.breakdown[part] / Math.max(gauge.budget, 1))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <dl className="mt-3 grid grid-cols-[1fr_auto] gap-x-3 gap-y-1 border-t border-line pt-3 text-xs text-soft tabular-nums">
        {ticksOf(gauge).map((tick) => (
          <Row key={tick.name} term={t(`${tick.name}_at`)}>
            {number(tick.tokens)}
          </Row>
        ))}
        <Row term={t('budget')}>{number(gauge.budget)}</Row>
        <Row term={t('window')}>{number(gauge.window)}</Row>
        {gauge.anchors_behind_marker > 0 && (
          <Row term={t('anchors_behind_marker')}>{number(gauge.anchors_behind_marker)}</Row>
        )}
      </dl>
    </div>
  );
}

function Row({ term, children }: { term: string; children: React.ReactNode }) {
  return (
    <>
      <dt>{term}</dt>
      <dd className="text-right text-ink">{children}</dd>
    </>
  );
}
