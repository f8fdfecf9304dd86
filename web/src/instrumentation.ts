/** Runs before the first request: a server with unusable settings ends with one line. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return;
  const { settings } = await import('./server/settings');
  try {
    settings();
  } catch (error) {
    process.stderr.write(`throughline-web: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
