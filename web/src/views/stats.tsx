'use client';

import { getStats, listCompactions, listMessages } from '@/api/resources';
import type { ConversationStats } from '@/api/types';
import { useWords } from '@/i18n/provider';
import { useConversation } from '@/state/conversation';
import { part } from '@/state/part';
import { classes } from '@/ui/classes';
import { Shown, useLoaded } from '@/ui/loaded';
import { servedAndFull } from './served';
import { Section } from './section';

const CompactionPlot = part(() => import('./plots').then((plots) => plots.CompactionPlot));
const ServedPlot = part(() => import('./plots').then((plots) => plots.ServedPlot));
const LatencyPlot = part(() => import('./plots').then((plots) => plots.LatencyPlot));

const SHOWN_COMPACTIONS = 40;

/** The effects and the savings of compactions. */
export default function StatsView() {
  const { t, language } = useWords();
  const { id, revisions } = useConversation();
  const stats = useLoaded((signal) => getStats(id, signal), [id, language, revisions.messages, revisions.compactions]);
  const compactions = useLoaded((signal) => listCompactions(id, null, signal), [id, revisions.compactions]);
  const messages = useLoaded((signal) => listMessages(id, 'desc', null, 100, signal), [id, revisions.messages]);
  return (
    <Shown of={stats}>
      {(found) => (
        <div className="space-y-5">
          <Figures stats={found} />
          <Section title={t('plot_compactions')} what={t('plot_compactions_what')}>
            <Shown of={compactions}>
              {({ data }) => (
                <CompactionPlot
                  compactions={data.filter((one) => one.status === 'applied').slice(0, SHOWN_COMPACTIONS).toReversed()}
                />
              )}
            </Shown>
          </Section>
          <Section title={t('plot_served')} what={t('plot_served_what')}>
            <Shown of={messages}>
              {({ data }) => <ServedPlot turns={servedAndFull(data.toReversed(), found.context.history_tokens)} />}
            </Shown>
          </Section>
          <div className="grid gap-5 lg:grid-cols-2">
            <Section title={t('plot_latency')}>
              <LatencyPlot latency={found.latency} />
            </Section>
            <Section title={t('refusals')} what={t('refusals_what')}>
              <Refusals stats={found} />
            </Section>
          </div>
        </div>
      )}
    </Shown>
  );
}

function Figures({ stats }: { stats: ConversationStats }) {
  const { t, number, percent } = useWords();
  const cost = stats.context.cost_per_query;
  const money = (value: number | null | undefined) =>
    value === null || value === undefined
      ? t('unknown_price')
      : number(value, { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', maximumFractionDigits: 6 });
  const shown: [string, string][] = [
    [t('figure_turns'), number(stats.turns)],
    [t('figure_compactions'), number(stats.compactions.applied)],
    [t('figure_saved'), number(stats.tokens.saved)],
    [t('figure_saved_share'), stats.context.saved_share === null ? '–' : percent(stats.context.saved_share)],
    [t('figure_cost_saved'), money(cost.saved_usd)],
    [t('figure_cost_compactions'), money(stats.model_calls.cost_usd)],
  ];
  return (
    <>
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3">
        {shown.map(([term, value]) => (
          <div key={term} className="rounded-2xl border border-line bg-surface p-3.5">
            <dt className="text-xs text-soft">{term}</dt>
            <dd className={classes('mt-1 font-semibold tabular-nums', value.length > 10 ? 'text-base leading-7' : 'text-xl')}>{value}</dd>
          </div>
        ))}
      </dl>
      {stats.summary.length > 0 && <p className="text-sm text-soft">{stats.summary.join(' · ')}</p>}
    </>
  );
}

function Refusals({ stats }: { stats: ConversationStats }) {
  const { t, number } = useWords();
  const outcomes = [...stats.compactions.by_status, ...stats.compactions.by_reason, ...stats.model_calls.by_reason];
  const repairs = stats.compactions.repairs.map(({ label, count }) => ({ name: `repair ${label}`, label, count }));
  const rows = [...outcomes, ...repairs].filter((row) => row.count > 0);
  if (!rows.length) return <p className="text-sm text-soft">{t('nothing_yet')}</p>;
  return (
    <table className="w-full text-sm">
      <tbody className="divide-y divide-line">
        {rows.map((row, place) => (
          <tr key={`${place}-${row.name}`}>
            <th scope="row" className="py-1.5 pr-3 text-left font-normal">
              {row.label}
            </th>
            <td className="py-1.5 text-right tabular-nums">{number(row.count)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
