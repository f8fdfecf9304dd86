import type { Metadata, Viewport } from 'next';
import { ThemeProvider } from 'next-themes';
import type { ReactNode } from 'react';
import './globals.css';

export const metadata: Metadata = {
  title: 'Throughline',
  description: 'Conversations that outgrow a context window, kept whole.',
  referrer: 'no-referrer',
};

/** A keyboard on the screen covers nothing: the page is as high as what is left. */
export const viewport: Viewport = { width: 'device-width', initialScale: 1, interactiveWidget: 'resizes-content' };

/** The nonce of a request to the page's own server; static files have none, since their scripts are known by hash. */
async function nonceOf(): Promise<string | undefined> {
  if (process.env.NEXT_PUBLIC_BUILD !== 'standalone') return undefined;
  const { headers } = await import('next/headers');
  return (await headers()).get('x-nonce') ?? undefined;
}

export default async function Layout({ children }: { children: ReactNode }) {
  const nonce = await nonceOf();
  return (
    <html lang="en" suppressHydrationWarning>
      <body>
        <ThemeProvider attribute="class" disableTransitionOnChange nonce={nonce}>
          {children}
        </ThemeProvider>
      </body>
    </html>
  );
}
