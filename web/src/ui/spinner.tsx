import { LoaderCircle } from 'lucide-react';
import { classes } from './classes';

export function Spinner({ className }: { className?: string }) {
  return <LoaderCircle className={classes('animate-spin', className ?? 'size-4')} aria-hidden />;
}
