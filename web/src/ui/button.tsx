import type { ButtonHTMLAttributes, Ref } from 'react';
import { classes } from './classes';

type Look = 'plain' | 'primary' | 'quiet' | 'danger';

const LOOKS: Record<Look, string> = {
  plain: 'border border-line bg-surface hover:bg-raised',
  primary: 'bg-accent text-accent-ink hover:opacity-90',
  quiet: 'text-soft hover:bg-raised hover:text-ink',
  danger: 'border border-line bg-surface text-bad hover:bg-bad-wash',
};

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  /** Only an icon: the button is square, and its `aria-label` is also its tooltip. */
  square?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({ look = 'plain', square = false, className, type = 'button', ...rest }: Props) {
  return (
    <button
      type={type}
      title={square ? rest['aria-label'] : undefined}
      className={classes(
        'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-lg text-sm font-medium whitespace-nowrap',
        'transition-colors disabled:cursor-not-allowed disabled:opacity-45',
        square ? 'size-8' : 'h-8 px-3',
        LOOKS[look],
        className,
      )}
      {...rest}
    />
  );
}
