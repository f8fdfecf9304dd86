/** A long history scrolls: a bounded part of it is in the page, from its end to its beginning. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, conversationOf, faults, open, send, settled, withPage } from './browser.mjs';

const BATCHES = Number(process.env.PAGE_BATCHES ?? 1);
const PER_BATCH = 1000;
const MOST = 160;

test('a long history scrolls back to its first message, and forward again', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Long', policy: { max_tokens: -1 } });
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const messages = Array.from({ length: PER_BATCH }, (_, number) => ({
      role: number % 2 ? 'assistant' : 'user',
      content: `Message ${batch * PER_BATCH + number + 1}. ${'More of it. '.repeat(number % 7)}`,
    }));
    await api('POST', `/conversations/${id}/messages/batch`, { messages });
  }
  const all = BATCHES * PER_BATCH;
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.locator(`[data-seq="${all}"]`).waitFor();
    const mounted = () => page.locator('[data-seq]').count();
    const first = async () => Number(await page.locator('[data-seq]').first().getAttribute('data-seq'));

    // Further up, page by page: what the reader looks at stays where it is.
    for (let step = 0; step < 6; step += 1) {
      const before = await first();
      await page.getByTestId('thread').evaluate((box) => box.scrollTo(0, 300));
      await page.waitForFunction((seq) => Number(document.querySelector('[data-seq]').dataset.seq) < seq, before);
      assert.ok((await mounted()) <= MOST, `${await mounted()} messages are mounted`);
      const top = await page.locator(`[data-seq="${before}"]`).boundingBox();
      assert.ok(top && Math.abs(top.y) < 4000, 'the place is kept');
    }

    // An original far away, by its number.
    await open(page, `?c=${id}&m=7`);
    await page.locator('[data-seq="7"].marked').waitFor();
    await page.locator('[data-seq="1"]').waitFor();
    assert.ok((await mounted()) <= MOST);
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.locator(`[data-seq="${all}"]`).waitFor();

    // And by its words, which are typed at once.
    await page.getByRole('button', { name: 'Search in this conversation' }).click();
    await page.getByRole('dialog').getByRole('searchbox').waitFor();
    await page.keyboard.type('Message 42');
    await page.getByRole('dialog').getByRole('button', { name: /#42\b/ }).click();
    await page.locator('[data-seq="42"].marked').waitFor();

    // What is said from up there stands at the end, and the reader is taken there.
    await send(page, 'And one more.');
    await page.getByTestId('thread').getByText('And one more.').waitFor();
    await page.locator(`[data-seq="${all + 2}"]`).waitFor();
    await settled(page);
    const said = page.locator(`[data-seq="${all + 1}"]`);
    assert.match(await said.innerText(), /^And one more\./);
    assert.equal(await page.getByTestId('thread').getByText('And one more.', { exact: true }).count(), 1, 'once');
    const below = await page.getByTestId('thread').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    assert.ok(below < 48, `${below} pixels are below what is shown`);
  });
});

test('who reads further up while a reply ends stays there, and what was asked is not given back', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Further up', policy: { max_tokens: -1 } });
  const messages = Array.from({ length: 400 }, (_, number) => ({ role: number % 2 ? 'assistant' : 'user', content: `Message ${number + 1}.` }));
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  await withPage({ allows: ['503'] }, async (page) => {
    await open(page, `?c=${id}`);
    const thread = page.getByTestId('thread');
    const first = () => page.evaluate(() => Number(document.querySelector('[data-seq]')?.dataset.seq));
    const goUp = async () => {
      for (let seq = await first(); seq > 160; seq = await first()) {
        await thread.evaluate((box) => box.scrollTo(0, 100));
        await page.waitForFunction((before) => Number(document.querySelector('[data-seq]').dataset.seq) < before, seq);
      }
      await page.waitForTimeout(500);
      return first();
    };
    for (const isRefused of [false, true]) {
      let go = () => {};
      const held = new Promise((resolve) => (go = resolve));
      await page.route('**/ui', async (route) => {
        if (route.request().method() !== 'POST') return route.continue();
        await held;
        // The message is stored, and what answers in the service's place does not say so.
        return isRefused ? route.fetch().then(() => route.fulfill({ status: 503, json: { detail: 'Away.' } })) : route.continue();
      });
      await page.getByRole('textbox', { name: 'Message', exact: true }).waitFor();
      await page.locator('[data-seq]').last().waitFor();
      await send(page, 'From the end.');
      const top = await goUp();
      assert.ok(top <= 160, `${top}`);
      go();
      await settled(page);
      await page.waitForTimeout(800);
      assert.ok((await first()) <= top, `${await first()} is the first one, no longer ${top}`);
      assert.equal(await page.locator('textarea').inputValue(), '');
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.getByRole('button', { name: 'Latest' }).click();
      await page.locator('[data-seq="402"]').waitFor();
    }
  });
});

test('the page answers while a long reply is set', async () => {
  const part = (number) => `## Part ${number}\n\n- **one** of ${number}\n\n  more of it\n\n\`\`\`\na\n\nb\n\`\`\`\n\n${'Some words. '.repeat(9)}\n\n`;
  const talk = async (title, content, role = 'assistant') => {
    const { id } = await api('POST', '/conversations', { title, policy: { max_tokens: -1 } });
    await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role, content }] });
    return id;
  };
  const parts = 700;
  const long = await talk('Long reply', Array.from({ length: parts }, (_, number) => part(number)).join(''));
  const short = await talk('Short reply', part(0));
  const question = await talk('Long question', 'ab '.repeat(50_000), 'user');
  const endless = await talk('Endless reply', 'word '.repeat(200_000));
  await withPage({}, async (page) => {
    // Counts how often the page answers between the text as it is written and the text as it is set.
    await page.addInitScript(() => {
      globalThis.answers = 0;
      setInterval(() => (globalThis.answers += document.querySelector('[data-seq] > div > p') ? 1 : 0), 1);
    });
    const answers = async (id) => {
      await open(page, `?c=${id}`);
      await page.locator('[data-seq="1"] .prose-reply').waitFor();
      return page.evaluate(() => globalThis.answers);
    };
    assert.ok((await answers(long)) > 3);
    const reply = page.locator('[data-seq="1"]');
    for (const kind of ['h2', 'ul', 'pre']) assert.equal(await reply.locator(kind).count(), parts, kind);
    assert.equal(await reply.locator('li > p').count(), 2 * parts, 'blank lines do not end an item');
    const below = await page.getByTestId('thread').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    assert.ok(below < 48, `${below} pixels are below what is shown`);
    assert.equal(await answers(short), 0, 'control: a short reply is set at once');

    await open(page, `?c=${question}`);
    const length = () => reply.locator('p').first().evaluate((text) => text.textContent.length);
    await reply.waitFor();
    assert.ok((await length()) < 101_000, 'of a very long question the beginning is shown');
    await reply.getByRole('button', { name: 'Show all 150,000 characters' }).click();
    assert.equal(await length(), 150_000);

    await open(page, `?c=${endless}`);
    await reply.getByRole('button', { name: 'Show all 1,000,000 characters' }).waitFor();
    assert.ok((await length()) < 201_000, 'of an endless reply too');
  });
});

test('a message that cannot be set as Markdown is shown as it is written, and the others stay', async () => {
  for (const bomb of ['> '.repeat(4_000), '_a*'.repeat(30_000)]) {
    const { id } = await api('POST', '/conversations', { title: 'Bomb', policy: { max_tokens: -1 } });
    const messages = [bomb, 'All is **well**.'].map((content) => ({ role: 'assistant', content }));
    await api('POST', `/conversations/${id}/messages/batch`, { messages });
    await withPage({ allows: ['call stack'] }, async (page) => {
      const began = Date.now();
      await open(page, `?c=${id}`);
      await page.locator('[data-seq="2"] .prose-reply').waitFor();
      const shown = await page.locator('[data-seq="1"] p').first().innerText();
      assert.ok(shown.startsWith(bomb.slice(0, 100)));
      assert.ok(Date.now() - began < 60_000, 'set as Markdown, the second one takes minutes');
    });
  }
});

test('what was searched for is marked in the hits, and until they come the page says that it looks', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Hits' });
  const content = 'On the *Straße* a lamp, two LAMPS; no clamp. Café. 東京の港 <b>';
  const { data } = await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content }] });
  const hit = { message_id: data[0].id, seq: 1, role: 'user', created_at: data[0].created_at, snippet: content, score: 1 };
  await withPage({}, async (page) => {
    let answer = () => {};
    await page.route('**/search?**', async (route) => {
      await new Promise((resolve) => (answer = resolve));
      await route.fulfill({ json: { data: [hit] } }).catch(() => {});
    });
    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: 'Search in this conversation' }).click();
    const dialog = page.getByRole('dialog');
    const marks = async (words) => {
      await dialog.getByRole('searchbox').fill('');
      await dialog.getByRole('button', { name: /#1/ }).waitFor({ state: 'detached' });
      await dialog.getByRole('searchbox').fill(words);
      await dialog.getByText('Loading').waitFor();
      answer();
      await dialog.getByRole('button', { name: /#1/ }).waitFor();
      assert.ok((await dialog.getByRole('button', { name: /#1/ }).innerText()).endsWith(content), 'nothing of the hit is lost');
      return dialog.locator('mark').allInnerTexts();
    };
    assert.deepEqual(await marks('lamp'), ['lamp', 'LAMP']);
    assert.deepEqual(await marks('"strasse" cafe'), ['Straße', 'Café']);
    assert.deepEqual(await marks('京'), ['京']);
    assert.deepEqual(await marks('ship <b>'), ['b']);
    assert.deepEqual(await faults(page), []);
  });
});

test('a search shows further hits when asked, and says so where they do not come', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Many hits' });
  const messages = Array.from({ length: 65 }, (_, number) => ({ role: 'user', content: `Lamp number ${number}.` }));
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  await withPage({ allows: ['503'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: 'Search in this conversation' }).click();
    const dialog = page.getByRole('dialog');
    const hits = dialog.getByRole('listitem');
    const more = dialog.getByRole('button', { name: 'Show more' });
    await dialog.getByRole('searchbox').fill('lamp');
    await more.waitFor();
    assert.equal(await hits.count(), 30);
    await page.route('**/search?**', (route) => route.fulfill({ status: 503, json: { detail: 'The database is away.' } }));
    await more.click();
    await dialog.getByText('The database is away.').waitFor();
    await page.unroute('**/search?**');
    await more.click();
    await hits.nth(59).waitFor();
    await more.click();
    await more.waitFor({ state: 'detached' });
    assert.equal(new Set(await hits.allInnerTexts()).size, 65);
  });
});

test('lists and quotations of a reply have their signs at the side where their text begins', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Sides' });
  const of = (word) => `- ${word}\n\n1. ${word}\n\n> ${word}\n`;
  const messages = [of('أولاً'), of('first')].map((content) => ({ role: 'assistant', content }));
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    for (const [seq, side] of [[1, 'rtl'], [2, 'ltr']]) {
      const reply = page.locator(`[data-seq="${seq}"] .prose-reply`);
      await reply.locator('blockquote').waitFor();
      const sides = await reply.locator('li, blockquote').evaluateAll((all) => all.map((one) => getComputedStyle(one).direction));
      assert.deepEqual(sides, [side, side, side]);
      const line = await reply.locator('blockquote').evaluate((one) => getComputedStyle(one).borderLeftWidth);
      assert.equal(line, side === 'rtl' ? '0px' : '4px');
    }
  });
});

test('a search of titles says how many it looked through, and looks further when asked', async () => {
  await withPage({}, async (page) => {
    await api('POST', '/conversations', {});
    const [one] = (await api('GET', '/conversations?limit=1')).data;
    let asked = 0;
    await page.route(/\/conversations\?limit/, (route) => {
      asked += 1;
      const data = Array.from({ length: 30 }, (_, number) => ({ ...one, id: `${asked}-${number}`, title: `Talk ${asked}` }));
      return route.fulfill({ json: { data, next_cursor: asked < 30 ? 'more' : null, has_more: asked < 30 } });
    });
    await open(page);
    await page.getByRole('searchbox', { name: 'Search titles' }).fill('Talk 25');
    await page.getByText('The titles of the newest 600 conversations were searched.').waitFor();
    assert.equal(await page.getByText('Talk 25').count(), 0);
    await page.getByRole('button', { name: 'Search older ones' }).click();
    await page.getByText('Talk 25').first().waitFor();
  });
});

test('the list of conversations stays in its order and as long as it is while messages come', async () => {
  let id = '';
  for (let number = 0; number < 95; number += 1) ({ id } = await api('POST', '/conversations', { title: `Row ${number}` }));
  const say = (content) => api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content }] });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    const rows = page.locator('aside nav li');
    const longer = (than) => page.waitForFunction((least) => document.querySelectorAll('aside nav li').length > least, than);
    const toEnd = () => rows.last().scrollIntoViewIfNeeded();
    const isFurtherUrl = (url) => url.pathname === '/conversations' && url.searchParams.has('after');
    const isFirst = (response) => /\/conversations\?(?!.*after=)/.test(response.url());
    await longer(29);
    await toEnd();
    await longer(59);

    // While a message comes, a page is on its way: it is the answer to a list that is no more.
    let go = () => {};
    const held = new Promise((resolve) => (go = resolve));
    let asks = 0;
    await page.route(isFurtherUrl, async (route) => {
      asks += 1;
      const isLater = asks > 1;
      await held;
      if (isLater) await new Promise((resolve) => setTimeout(resolve, 300));
      return route.continue().catch(() => undefined);
    });
    const asked = page.waitForRequest((request) => isFurtherUrl(new URL(request.url())));
    await toEnd();
    await asked;
    const again = page.waitForResponse(isFirst);
    await say('One.');
    await again;
    await page.waitForTimeout(300);
    go();
    await page.waitForTimeout(1500);
    const shown = await rows.locator('button > span:first-child').allInnerTexts();
    const { data } = await api('GET', '/conversations?limit=100');
    assert.deepEqual(shown, data.slice(0, shown.length).map((one) => one.title || 'Untitled'));

    // Whoever looks further down stays there.
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await toEnd();
    await longer(89);
    await page.locator('aside nav').evaluate((box) => box.scrollTo(0, 1600));
    await page.waitForTimeout(500);
    const place = await page.locator('aside nav').evaluate((box) => box.scrollTop);
    const once = page.waitForResponse(isFirst);
    await say('Two.');
    await once;
    await page.waitForTimeout(500);
    assert.ok((await rows.count()) >= 90, `${await rows.count()} rows are left`);
    assert.ok(Math.abs((await page.locator('aside nav').evaluate((box) => box.scrollTop)) - place) < 100, 'the place is kept');
  });
});

test('a conversation begins though its first line is cut within a character', async () => {
  const words = `${'語'.repeat(59)}🙂 and more`;
  await withPage({}, async (page) => {
    await open(page);
    await send(page, words);
    await page.locator('[data-seq="2"]').waitFor();
    const { title } = await api('GET', `/conversations/${conversationOf(page)}`);
    assert.equal(title, `${'語'.repeat(59)}…`);
  });
});

test('the chat page loads at most 300 kB of script', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Scripts' });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.waitForTimeout(500);
    const bytes = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter((one) => one.name.endsWith('.js'))
        .reduce((sum, one) => sum + one.encodedBodySize, 0),
    );
    assert.ok(bytes > 100_000 && bytes <= 300_000, `${bytes} bytes`);
  });
});
