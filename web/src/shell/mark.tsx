/** The product's sign: a line that goes through. */
export function Mark({ className }: { className?: string }) {
  return (
    <svg viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="2.2" strokeLinecap="round" className={className} aria-hidden>
      <path d="M2 12h20" />
      <path d="M6 6.5h5M6 17.5h9" opacity=".45" />
      <circle cx="17" cy="12" r="2.6" fill="var(--surface)" />
    </svg>
  );
}
