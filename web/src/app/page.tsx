import { Suspense } from 'react';
import { Application } from '@/shell/application';
import { Skeleton } from '@/shell/skeleton';

export default function Page() {
  return (
    <Suspense fallback={<Skeleton />}>
      <Application />
    </Suspense>
  );
}
