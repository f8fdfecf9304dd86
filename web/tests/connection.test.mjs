/** What a page does about a connection that is dead, about events that are gone, and how much it asks for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, open, send, settled, withPage } from './browser.mjs';

const field = (page) => page.getByRole('textbox', { name: 'Message', exact: true });
const begun = async (...contents) => {
  const { id } = await api('POST', '/conversations', {});
  const messages = contents.map((content, place) => ({ role: place % 2 ? 'assistant' : 'user', content }));
  if (messages.length) await api('POST', `/conversations/${id}/messages/batch`, { messages });
  return id;
};

/** Lets the answers to some requests become silent: `dead` names them, from now on. Long waits are short. */
const watchful = (page) =>
  page.addInitScript(() => {
    const { fetch, setTimeout } = window;
    window.dead = null;
    window.setTimeout = (work, pause, ...rest) => setTimeout(work, pause > 60_000 ? 1_500 : pause, ...rest);
    window.fetch = async (address, options) => {
      const answer = await fetch(address, options);
      if (!answer.body || !/\/(events|ui)(\?|$)/.test(String(address))) return answer;
      let isDead = false;
      const silenced = new TransformStream({
        transform(bytes, stream) {
          isDead ||= window.dead !== null && String(address).includes(window.dead);
          if (!isDead) stream.enqueue(bytes);
        },
        flush: () => (isDead ? new Promise(() => {}) : undefined),
      });
      return new Response(answer.body.pipeThrough(silenced), { status: answer.status, headers: answer.headers });
    };
  });

test('a connection that died without a word is noticed, and another one brings what was missed', async () => {
  const id = await begun('One.', 'Two.');
  await withPage({}, async (page) => {
    await watchful(page);
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="2"]').waitFor();
    await page.waitForTimeout(300);
    await page.evaluate(() => (window.dead = '/events'));
    await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'Three.' }] });
    await page.waitForTimeout(700);
    assert.equal(await page.locator('[data-seq="3"]').count(), 0, 'control: nothing came');
    await page.evaluate(() => (window.dead = null));
    await page.locator('[data-seq="3"]').waitFor({ timeout: 8_000 });
  });
});

test('a page whose network comes back does not wait before it asks for its events', async () => {
  const id = await begun('One.', 'Two.');
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    await page.addInitScript(() => {
      const { setTimeout } = window;
      window.setTimeout = (work, pause, ...rest) => setTimeout(work, pause === 1_000 ? 600_000 : pause, ...rest);
    });
    await page.route('**/events?*', (route) => route.abort());
    await open(page, `?c=${id}`);
    await page.getByText(/^Not connected to the service/).waitFor();
    await page.unroute('**/events?*');
    await page.evaluate(() => window.dispatchEvent(new Event('online')));
    await page.getByText(/^Not connected to the service/).waitFor({ state: 'detached', timeout: 8_000 });
  });
});

test('a reply whose connection died without a word is there all the same, once', async () => {
  const id = await begun();
  await withPage({}, async (page) => {
    await watchful(page);
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.evaluate(() => (window.dead = '/ui'));
    await send(page, 'Are you there?');
    await page.waitForTimeout(700);
    await page.evaluate(() => (window.dead = null));
    await page.locator('[data-seq="2"]').waitFor({ timeout: 8_000 });
    await settled(page);
    const { data } = await api('GET', `/conversations/${id}/messages`);
    assert.deepEqual(data.map((one) => one.role), ['user', 'assistant']);
  });
});

test('of events that are no longer stored none is shown twice, and what ended among them does not run for ever', async () => {
  const id = await begun('One.', 'Two.');
  const event = (number, type, data) =>
    `id: ${number}\nevent: ${type}\ndata: ${JSON.stringify({ id: String(number), type, data, occurred_at: '2026-01-01T00:00:00Z', notification: null })}\n\n`;
  await withPage({ allows: ['422'] }, async (page) => {
    // The first connection brings the beginning of a compaction and breaks; its end is no longer stored.
    let asked = 0;
    await page.route('**/events?*', (route) => {
      asked += 1;
      if (asked === 1) return route.fulfill({ contentType: 'text/event-stream', body: event(7, 'compaction.started', { compaction_id: 'c', trigger: 'manual' }) });
      if (asked === 2) return route.fulfill({ status: 422, json: { code: 'last_event_id' } });
      return route.continue();
    });
    await open(page, `?c=${id}`);
    await page.getByTestId('compacting').waitFor();
    await page.getByTestId('compacting').waitFor({ state: 'detached' });
    assert.equal(await page.getByRole('button', { name: 'Compact', exact: true }).isEnabled(), true);

    await page.unrouteAll();
    let told = 0;
    await page.route('**/events?newest=300', (route) => {
      told += 1;
      return told === 1 ? route.fulfill({ contentType: 'text/event-stream', body: event(7, 'compaction.started', { compaction_id: 'c', trigger: 'manual' }) }) : route.continue();
    });
    await page.route('**/events?after=*', (route) => (told === 1 ? route.fulfill({ status: 422, json: { code: 'last_event_id' } }) : route.continue()));
    await page.getByRole('button', { name: 'Timeline', exact: true }).click();
    await page.locator('main').getByText('Compaction began').waitFor();
    await page.locator('main').getByText('Message stored').nth(1).waitFor();
    assert.equal(await page.locator('main').getByText('Compaction began').count(), 0);
  });
});

test('a message that meets a turn which has just begun elsewhere comes back to its writer', async () => {
  const id = await begun();
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.waitForTimeout(500);
    await field(page).fill('Mine');
    // The page hears of the other turn in the moment in which its reader presses Enter.
    await page.evaluate(() => {
      const parse = JSON.parse;
      const area = document.querySelector('textarea');
      JSON.parse = (text, ...rest) => {
        const told = parse(text, ...rest);
        if (told?.type === 'start' && area.value === 'Mine') {
          JSON.parse = parse;
          queueMicrotask(() => area.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true })));
        }
        return told;
      };
    });
    const told = api('POST', `/conversations/${id}/chat`, { content: 'Tell me slowly about the harbour.' });
    await page.getByRole('button', { name: 'Stop' }).click();
    await told;
    await settled(page);
    await page.waitForTimeout(300);
    const said = (await api('GET', `/conversations/${id}/messages`)).data.map((one) => one.content);
    assert.ok(said.includes('Mine') || (await field(page).inputValue()) === 'Mine', 'it is nowhere');
  });
});

test('of two messages that are sent at once the refused one comes back, and the turn of the other is followed', async () => {
  const id = await begun();
  await withPage({ allows: ['409'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.waitForTimeout(500);
    let theirs;
    await page.route('**/ui', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      theirs = api('POST', `/conversations/${id}/chat`, { content: 'Tell me slowly about the harbour.' });
      await page.locator('[data-seq="1"]').waitFor();
      return route.continue();
    });
    // Until their turn is followed, the button that stops it may be about to become the one that sends.
    const followed = page.waitForResponse((response) => response.url().endsWith('/ui/stream') && response.status() === 200);
    await send(page, 'Mine');
    await followed;
    await page.getByTestId('running-reply').waitFor();
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'Mine');
    await page.getByRole('button', { name: 'Stop' }).click();
    await theirs;
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal(await field(page).inputValue(), 'Mine');
  });
});

test('a compaction that began before the page was loaded is known, and so is its end', async () => {
  const id = await begun('One.', 'Two.');
  await withPage({}, async (page) => {
    const running = { id: 'c', status: 'running', trigger: 'manual', requested_at: new Date().toISOString() };
    let status = 'running';
    await page.route('**/compactions?*', (route) => route.fulfill({ json: { data: [{ ...running, status }], next_cursor: null } }));
    await open(page, `?c=${id}`);
    await page.getByTestId('compacting').waitFor();
    const button = page.getByRole('button', { name: 'Compact', exact: true });
    assert.equal(await button.isDisabled(), true);
    status = 'skipped';
    await api('POST', `/conversations/${id}/compact`);
    await page.getByTestId('compacting').waitFor({ state: 'detached' });
    assert.equal(await button.isEnabled(), true);
  });
});

test('what is typed is asked for by the word, not by the letter', async () => {
  const id = await begun('The harbour at night.');
  await withPage({}, async (page) => {
    let asked = 0;
    page.on('request', (request) => (asked += /\/(search|context)\?/.test(request.url()) ? 1 : 0));
    await open(page, `?c=${id}&view=context`);
    await page.locator('main table').waitFor();
    asked = 0;
    await page.getByLabel('Question').pressSequentially('harbour at night', { delay: 25 });
    await page.waitForTimeout(800);
    assert.ok(asked >= 1 && asked <= 3, `${asked} contexts for a question`);
    asked = 0;
    await page.getByRole('button', { name: 'Search in this conversation' }).click();
    await page.getByRole('dialog').getByRole('searchbox').pressSequentially('harbour night', { delay: 25 });
    await page.getByRole('dialog').getByRole('button', { name: /#1\b/ }).waitFor();
    assert.ok(asked <= 3, `${asked} searches for two words`);
  });
});

test('what is begun before the presets have come, and once more after that, is there once', async () => {
  const words = `Only one of ${Math.random()}`;
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    let come = () => {};
    const held = new Promise((resolve) => (come = resolve));
    await page.route('**/presets', (route) => held.then(() => route.continue()));
    await page.route('**/conversations', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return route.abort();
    });
    await open(page);
    await send(page, words);
    await page.getByText(/does not answer/).waitFor();
    come();
    await page.getByText('Facts, tone and story').first().waitFor();
    await page.unroute('**/conversations');
    await field(page).press('Enter');
    await page.locator('[data-seq="2"]').waitFor();
    const { data } = await api('GET', '/conversations?limit=5');
    assert.equal(data.filter((one) => one.title === words).length, 1);
  });
});
