'use client';

import { useId } from 'react';
import { classes } from './classes';

interface Props {
  label: string;
  hint?: string;
  value: string;
  onChange: (value: string) => void;
  type?: 'text' | 'password' | 'number' | 'search';
  rows?: number;
  placeholder?: string;
  maxLength?: number;
  min?: number;
  max?: number;
  step?: number | 'any';
  autoComplete?: string;
  autoFocus?: boolean;
  mono?: boolean;
  hideLabel?: boolean;
}

export const INPUT =
  'w-full rounded-lg border border-line bg-paper px-3 py-1.5 text-sm placeholder:text-soft focus-visible:border-accent';

export function Field({ label, hint, value, onChange, rows, mono = false, hideLabel = false, ...rest }: Props) {
  const id = useId();
  const shared = { id, value, 'aria-describedby': hint ? `${id}-hint` : undefined, className: classes(INPUT, mono && 'font-mono') };
  return (
    <div>
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block text-sm font-medium'}>
        {label}
      </label>
      {rows ? (
        <textarea
          {...shared}
          rows={rows}
          placeholder={rest.placeholder}
          maxLength={rest.maxLength}
          onChange={(event) => onChange(event.target.value)}
        />
      ) : (
        <input {...shared} {...rest} onChange={(event) => onChange(event.target.value)} />
      )}
      {hint && (
        <p id={`${id}-hint`} className="mt-1 text-xs text-soft">
          {hint}
        </p>
      )}
    </div>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  hint?: string;
  value: T;
  options: { value: T; label: string }[];
  onChange: (value: T) => void;
  hideLabel?: boolean;
}

export function Choice<T extends string>({ label, hint, value, options, onChange, hideLabel = false }: ChoiceProps<T>) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block text-sm font-medium'}>
        {label}
      </label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value as T)} className={classes(INPUT, 'pr-8')}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      {hint && <p className="mt-1 text-xs text-soft">{hint}</p>}
    </div>
  );
}
