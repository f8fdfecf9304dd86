'use client';

import type { ReactElement, ReactNode } from 'react';
import { Area, AreaChart, Bar, BarChart, CartesianGrid, Legend, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts';
import type { Compaction, ConversationStats } from '@/api/types';
import { useWords } from '@/i18n/provider';
import type { Turn } from './served';

const AXIS = { stroke: 'var(--soft)', fontSize: 12, tickLine: false, axisLine: false } as const;
const TIP = {
  contentStyle: { background: 'var(--surface)', border: '1px solid var(--line)', borderRadius: 10, fontSize: 13 },
  itemStyle: { color: 'var(--ink)' },
  labelStyle: { color: 'var(--soft)' },
  cursor: { fill: 'var(--raised)' },
} as const;

const LEGEND = {
  wrapperStyle: { fontSize: 12 },
  itemSorter: null,
  formatter: (name: ReactNode) => <span style={{ color: 'var(--ink)' }}>{name}</span>,
} as const;

/** A plot, and the same data as a table for readers who cannot see it. */
function Figure({ empty, plot, table }: { empty: boolean; plot: ReactElement; table: ReactNode }) {
  const { t } = useWords();
  if (empty) return <p className="text-sm text-soft">{t('nothing_yet')}</p>;
  return (
    <figure>
      <div className="h-56" aria-hidden>
        <ResponsiveContainer width="100%" height="100%">
          {plot}
        </ResponsiveContainer>
      </div>
      <figcaption>
        <details className="mt-2 text-xs text-soft">
          <summary>{t('as_table')}</summary>
          <table className="mt-1 w-full max-w-md text-left tabular-nums">{table}</table>
        </details>
      </figcaption>
    </figure>
  );
}

export function CompactionPlot({ compactions }: { compactions: Compaction[] }) {
  const { t, number } = useWords();
  const rows = compactions.map((one) => ({
    name: `→ ${one.state_version_after}`,
    before: one.tokens_before ?? 0,
    after: one.tokens_after ?? 0,
  }));
  return (
    <Figure
      empty={!rows.length}
      plot={
        <BarChart data={rows} margin={{ left: -8, right: 4, top: 8 }} barGap={2} accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="name" {...AXIS} />
          <YAxis {...AXIS} width={56} tickFormatter={(value: number) => number(value)} />
          <Tooltip {...TIP} formatter={(value) => number(Number(value))} />
          <Legend {...LEGEND} />
          <Bar dataKey="before" name={t('before')} fill="var(--part-pending)" radius={[4, 4, 0, 0]} maxBarSize={36} isAnimationActive={false} />
          <Bar dataKey="after" name={t('after')} fill="var(--part-state)" radius={[4, 4, 0, 0]} maxBarSize={36} isAnimationActive={false} />
        </BarChart>
      }
      table={<Table heads={[t('version_heading'), t('before'), t('after')]} rows={rows.map((row) => [row.name, number(row.before), number(row.after)])} />}
    />
  );
}

export function ServedPlot({ turns }: { turns: Turn[] }) {
  const { t, number } = useWords();
  return (
    <Figure
      empty={turns.length < 2}
      plot={
        <AreaChart data={turns} margin={{ left: -8, right: 4, top: 8 }} accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="seq" {...AXIS} tickFormatter={(value: number) => `#${value}`} />
          <YAxis {...AXIS} width={56} tickFormatter={(value: number) => number(value)} />
          <Tooltip {...TIP} labelFormatter={(value) => `#${value}`} formatter={(value) => number(Number(value))} />
          <Legend {...LEGEND} />
          <Area dataKey="full" name={t('full_history')} stroke="var(--soft)" fill="var(--part-pending)" fillOpacity={0.35} isAnimationActive={false} />
          <Area dataKey="served" name={t('served')} stroke="var(--part-state)" fill="var(--part-state)" fillOpacity={0.45} strokeWidth={2} isAnimationActive={false} />
        </AreaChart>
      }
      table={<Table heads={[t('message'), t('full_history'), t('served')]} rows={turns.map((turn) => [`#${turn.seq}`, number(turn.full), number(turn.served)])} />}
    />
  );
}

export function LatencyPlot({ latency }: { latency: ConversationStats['latency'] }) {
  const { t, number } = useWords();
  const rows = (['turn', 'compaction', 'expansion'] as const)
    .filter((name) => latency[name].count > 0)
    .map((name) => ({ name: t(`latency_${name}`), median: latency[name].p50_ms ?? 0, high: latency[name].p95_ms ?? 0 }));
  return (
    <Figure
      empty={!rows.length}
      plot={
        <BarChart data={rows} margin={{ left: -8, right: 4, top: 8 }} barGap={2} accessibilityLayer={false}>
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis dataKey="name" {...AXIS} />
          <YAxis {...AXIS} width={56} tickFormatter={(value: number) => number(value)} />
          <Tooltip {...TIP} formatter={(value) => `${number(Math.round(Number(value)))} ms`} />
          <Legend {...LEGEND} />
          <Bar dataKey="median" name={t('median')} fill="var(--part-digests)" radius={[4, 4, 0, 0]} maxBarSize={36} isAnimationActive={false} />
          <Bar dataKey="high" name={t('high')} fill="var(--part-pending)" radius={[4, 4, 0, 0]} maxBarSize={36} isAnimationActive={false} />
        </BarChart>
      }
      table={
        <Table
          heads={[t('part'), `${t('median')}, ms`, `${t('high')}, ms`]}
          rows={rows.map((row) => [row.name, number(Math.round(row.median)), number(Math.round(row.high))])}
        />
      }
    />
  );
}

function Table({ heads, rows }: { heads: string[]; rows: string[][] }) {
  return (
    <>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col" className="pr-3 font-medium">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row[0]}>
            {row.map((cell, place) => (
              <td key={place} className="pr-3">
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </>
  );
}
