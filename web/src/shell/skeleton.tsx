/** The page's frame before its texts are loaded. It has no words, so that none has to change its language. */
export function Skeleton() {
  return (
    <div className="flex h-dvh" aria-hidden data-testid="skeleton">
      <div className="hidden w-72 border-r border-line bg-raised/50 md:block" />
      <div className="flex-1" />
    </div>
  );
}
