import { buildId } from './scripts/build-id.mjs';

/**
 * One tree, two builds.
 *
 * BUILD=export      static files below /ui, which the Python service serves; the browser asks the service itself.
 * BUILD=standalone  a server of its own, which asks the service for its users and keeps the key (src/app/api).
 */
const isExport = process.env.BUILD !== 'standalone';

/** @type {import('next').NextConfig} */
const config = {
  output: isExport ? 'export' : 'standalone',
  basePath: isExport ? '/ui' : '',
  trailingSlash: isExport,
  // Route handlers and the proxy are .ts files: an export has none.
  pageExtensions: isExport ? ['tsx'] : ['tsx', 'ts'],
  distDir: isExport ? '.next' : '.next-standalone',
  outputFileTracingRoot: import.meta.dirname,
  turbopack: {
    root: import.meta.dirname,
    resolveAlias: {
      // Markdown brings a parser of HTML: this page shows none, and need not load it.
      'rehype-raw': './src/chat/no-html.ts',
      'style-to-object': './src/chat/no-style.ts',
      // It is a second parser of Markdown.
      marked: './src/chat/blocks.ts',
      'tailwind-merge': './src/ui/no-merge.ts',
    },
  },
  generateBuildId: () => buildId(),
  env: { NEXT_PUBLIC_BUILD: isExport ? 'export' : 'standalone' },
  compress: false,
  poweredByHeader: false,
  devIndicators: false,
};

export default config;
