'use client';

import { DropdownMenu as Primitive } from 'radix-ui';
import type { ReactNode } from 'react';
import { classes } from './classes';

export function Menu({ trigger, children }: { trigger: ReactNode; children: ReactNode }) {
  return (
    <Primitive.Root modal={false}>
      <Primitive.Trigger asChild>{trigger}</Primitive.Trigger>
      <Primitive.Portal>
        <Primitive.Content
          align="end"
          sideOffset={4}
          collisionPadding={8}
          className="appears z-50 min-w-44 rounded-xl border border-line bg-surface p-1 shadow-lg"
        >
          {children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  );
}

const CLOSED = 30;

interface ItemProps {
  children: ReactNode;
  icon?: ReactNode;
  onSelect?: () => void;
  danger?: boolean;
}

export function MenuItem({ children, icon, onSelect, danger = false }: ItemProps) {
  const look = classes(
    'flex cursor-pointer items-center gap-2 rounded-lg px-2.5 py-1.5 text-sm select-none focus-visible:-outline-offset-2',
    'data-[highlighted]:bg-raised',
    danger && 'text-bad',
  );
  return (
    // The menu returns the focus first, so that a dialog that opens then knows where it was.
    <Primitive.Item className={look} onSelect={() => onSelect && setTimeout(onSelect, CLOSED)}>
      {icon}
      {children}
    </Primitive.Item>
  );
}

export function MenuLine() {
  return <Primitive.Separator className="my-1 h-px bg-line" />;
}

export function MenuHeading({ children }: { children: ReactNode }) {
  return <Primitive.Label className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-soft">{children}</Primitive.Label>;
}

export function MenuChoice<T extends string>(given: {
  value: T;
  options: { value: T; label: string }[];
  onChange: (value: T) => void;
}) {
  return (
    <Primitive.RadioGroup value={given.value} onValueChange={(value) => given.onChange(value as T)}>
      {given.options.map((option) => (
        <Primitive.RadioItem
          key={option.value}
          value={option.value}
          className="relative flex cursor-pointer items-center rounded-lg py-1.5 pr-2.5 pl-7 text-sm select-none focus-visible:-outline-offset-2 data-[highlighted]:bg-raised"
        >
          <Primitive.ItemIndicator className="absolute left-2.5 size-2 rounded-full bg-accent" />
          {option.label}
        </Primitive.RadioItem>
      ))}
    </Primitive.RadioGroup>
  );
}
