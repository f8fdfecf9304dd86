'use client';

import type { ComponentType, ReactNode } from 'react';
import { Failed } from '@/ui/boundary';
import { useLoaded } from '@/ui/loaded';
import { useIsLive } from './conversation';

/**
 * A component whose script is loaded when it is first shown. If that fails, the reader may try again, and it is tried
 * again once events come; what React loads lazily stays failed until the page is loaded anew.
 */
export function part<P extends object>(load: () => Promise<ComponentType<P>>, waiting: ReactNode = null): ComponentType<P> {
  return function Part(props: P) {
    const live = useIsLive();
    const found = useLoaded(() => load().then((component) => ({ component })), [live]);
    if (found.value) {
      const Loaded = found.value.component;
      return <Loaded {...props} />;
    }
    return found.loading ? waiting : <Failed onRetry={found.reload} />;
  };
}
