'use client';

import { Popover as Primitive } from 'radix-ui';
import type { ReactNode } from 'react';

export function Popover({ trigger, label, children }: { trigger: ReactNode; label: string; children: ReactNode }) {
  return (
    <Primitive.Root>
      <Primitive.Trigger asChild>{trigger}</Primitive.Trigger>
      <Primitive.Portal>
        <Primitive.Content
          aria-label={label}
          side="top"
          align="start"
          sideOffset={8}
          collisionPadding={12}
          className="appears z-50 max-h-[70dvh] w-[min(24rem,calc(100vw-1.5rem))] overflow-y-auto rounded-2xl border border-line bg-surface p-4 shadow-xl focus:outline-none"
        >
          {children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  );
}
