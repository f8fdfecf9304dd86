/** A browser, the page in it, and the service's API beside it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export const SERVICE = process.env.THROUGHLINE_URL ?? 'http://127.0.0.1:8000';
const PAGE = process.env.THROUGHLINE_PAGE ?? `${SERVICE}/ui/`;
const SHOTS = process.env.PAGE_SHOTS;
const PATIENCE = 30_000;
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Runs with a page of a browser of its own; what the page complains of fails the test. */
export async function withPage(options, work) {
  const profile = mkdtempSync(join(tmpdir(), 'throughline-page-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: FLAGS,
    locale: options.language === 'ru' ? 'ru-RU' : 'en-GB',
    colorScheme: options.dark ? 'dark' : 'light',
    hasTouch: options.touch ?? false,
    isMobile: options.touch ?? false,
    viewport: options.phone ? { width: 380, height: 780 } : { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    bypassCSP: false,
  });
  context.setDefaultTimeout(PATIENCE);
  const complaints = [];
  const listen = (page) => {
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  };
  context.on('page', listen);
  const page = context.pages()[0] ?? (await context.newPage());
  listen(page);
  try {
    await work(page, context);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
  }
  const told = complaints.filter((text) => !(options.allows ?? []).some((allowed) => text.includes(allowed)));
  if (told.length) throw new Error(`the page complains: ${told.join('\n')}`);
}

export async function open(page, query = '') {
  await page.goto(`${PAGE}${query}`);
  await page.getByTestId('skeleton').waitFor({ state: 'detached' });
}

/** A picture for those who look at them: only where a folder is given. */
export async function shot(page, name) {
  if (SHOTS) await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

export async function api(method, path, body) {
  const response = await fetch(`${SERVICE}${path}`, {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: method === 'GET' || method === 'DELETE' ? undefined : JSON.stringify(body ?? {}),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.status === 204 ? null : response.json();
}

/** What axe finds against WCAG 2.2 A and AA, in words; empty where all is well. */
export async function faults(page) {
  // The page's own policy forbids scripts from elsewhere: this one is put in by the browser's debugger.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }),
  );
  return violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`);
}

export async function send(page, text) {
  await page.getByRole('textbox', { name: /^(Message|Сообщение)$/ }).fill(text);
  await page.keyboard.press('Enter');
}

/** Until the reply is written and stored. */
export async function settled(page) {
  await page.getByRole('button', { name: /^(Send|Отправить)$/ }).waitFor();
}

export const conversationOf = (page) => new URL(page.url()).searchParams.get('c');

/** About 18 tokens each, every one with a value of its own. */
export const facts = (count, from = 0) =>
  Array.from(
    { length: count },
    (_, number) =>
      `The lamp number ${from + number} stands at pier ${(from + number) * 7 + 3} and costs ${(from + number) * 13 + 40} euros.`,
  ).join(' ');
