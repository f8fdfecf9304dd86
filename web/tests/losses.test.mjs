/** What goes wrong around the page: no word that somebody wrote is lost by it, and the page goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, conversationOf, facts, open, send, SERVICE, withPage } from './browser.mjs';

const field = (page) => page.getByRole('textbox', { name: 'Message', exact: true });
const tab = (page, name) => page.getByRole('button', { name, exact: true }).click();
const begun = async (...contents) => {
  const { id } = await api('POST', '/conversations', {});
  const messages = contents.map((content, place) => ({ role: place % 2 ? 'assistant' : 'user', content }));
  if (messages.length) await api('POST', `/conversations/${id}/messages/batch`, { messages });
  return id;
};
const refuses = (page, status, problem = {}) =>
  page.route('**/ui', (route) => (route.request().method() === 'POST' ? route.fulfill({ status, json: problem }) : route.continue()));

test('what was written stays: over another view, its files, a refusal, a failure, a login', async () => {
  const id = await begun();
  await withPage({ allows: ['401', '429', '503'] }, async (page) => {
    await open(page, `?c=${id}`);
    await field(page).fill('Half a thought');
    await tab(page, 'State');
    await page.getByText(/There is no state yet/).waitFor();
    await tab(page, 'Chat');
    assert.equal(await field(page).inputValue(), 'Half a thought');

    // What is written before the refusal comes stays behind what comes back.
    let refuse = () => {};
    await page.route('**/ui', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await new Promise((resolve) => (refuse = resolve));
      return route.fulfill({ status: 429, json: { code: 'rate_limited', reset_seconds: 40 } });
    });
    const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/ui'));
    await send(page, 'First');
    await sent;
    await field(page).fill('Second');
    refuse();
    await page.getByText(/A limit is reached/).waitFor();
    await page.waitForFunction(() => document.querySelector('textarea').value === 'First\n\nSecond');

    await page.unroute('**/ui');
    await refuses(page, 503, { detail: 'The database is away.' });
    await send(page, 'Third');
    await page.getByText('The database is away.').waitFor();
    await page.waitForFunction(() => document.querySelector('textarea').value === 'Third');

    // The session ends while somebody writes.
    await page.unroute('**/ui');
    await refuses(page, 401);
    await page.route('**/ui/session', (route) => route.fulfill({ status: 204 }));
    await send(page, 'Fourth');
    await page.locator('input[type=password]:focus').fill('tl_x');
    await page.getByRole('button', { name: 'Log in' }).click();
    await field(page).waitFor();
    assert.equal(await field(page).inputValue(), 'Fourth');

    await open(page);
    await field(page).fill('Read this, please.');
    await page.getByRole('button', { name: 'Attach files' }).click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await field(page).inputValue(), 'Read this, please.');
  });
});

test('a page that is not the service answers in its place: the reader is told so, not what a parser says', async () => {
  const id = await begun('Are you there?');
  await withPage({}, async (page) => {
    await page.route(`**/conversations/${id}`, (route) => route.fulfill({ contentType: 'text/html', body: '<html>Log in to this network</html>' }));
    await open(page, `?c=${id}`);
    await page.getByRole('alert').getByText('The service does not answer.').waitFor();
    await page.unroute(`**/conversations/${id}`);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('[data-seq="1"]').waitFor();
  });
});

test('a conversation that is opened while the service is away is shown once it is back', async () => {
  const id = await begun('Are you there?', 'Yes, I am.');
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    await page.route(`**/conversations/${id}**`, (route) => route.abort());
    await page.route(`**/conversations/${id}/**`, (route) => route.abort());
    await open(page, `?c=${id}`);
    await page.getByText('The service does not answer. Is it running?').first().waitFor();
    await page.unrouteAll();
    await page.getByText('Yes, I am.').waitFor();
    await page.getByText('The service does not answer. Is it running?').waitFor({ state: 'detached' });
  });
});

test('a message whose arrival nobody knows of is sent again as the same one', async () => {
  const id = await begun();
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    // It arrives, and neither its answer nor what it changed comes back.
    await page.route(/\/ui$/, async (route) => {
      if (route.request().method() === 'POST') await route.fetch();
      await route.abort();
    });
    await page.route(/\/(messages|events)\?/, (route) => route.abort());
    await send(page, 'Only once');
    await page.getByTestId('thread').getByText(/does not answer/).first().waitFor();
    await page.waitForFunction(() => document.querySelector('textarea').value === 'Only once');
    await page.unrouteAll();
    await field(page).press('Enter');
    await page.locator('[data-seq="2"]').waitFor();
    const { data } = await api('GET', `/conversations/${id}/messages`);
    assert.deepEqual(data.map((one) => one.role), ['user', 'assistant']);
  });
});

test('what could not be done is told: a copy, a status, a pin, a download, a stop', async () => {
  const id = await begun('We decided to keep lamp 7.', 'Noted.');
  await withPage({ allows: ['ERR_FAILED', '404', '503'] }, async (page) => {
    await page.addInitScript(() => {
      Navigator.prototype.__defineGetter__('clipboard', () => ({ writeText: () => Promise.reject(new Error('refused')) }));
      document.execCommand = () => window.copies ?? false;
    });
    await open(page, `?c=${id}`);
    const told = (words) => page.getByRole('alert').getByText(words).waitFor();
    const row = page.locator('[data-seq="1"]');
    const copy = async () => {
      await row.hover();
      await row.getByRole('button', { name: 'More' }).click();
      await page.getByRole('menuitem', { name: 'Copy' }).click();
    };
    await copy();
    await told(/did not allow copying/);
    await page.evaluate(() => (window.copies = true));
    await copy();
    await page.getByText(/did not allow copying/).waitFor({ state: 'detached' });

    await page.route('**/anchors/*', (route) => route.fulfill({ status: 503, json: { detail: 'The database is away.' } }));
    await page.getByTestId('anchor').first().click();
    await page.getByRole('menuitemradio', { name: 'resolved' }).click();
    await told('The database is away.');
    assert.doesNotMatch(await page.getByTestId('anchor').first().getAttribute('class'), /line-through/);
    await page.route('**/pin', (route) => route.abort());
    await row.hover();
    await row.getByRole('button', { name: /^Pin/ }).click();
    await told(/does not answer/);

    await page.route('**/export?*', (route) => route.abort());
    await page.getByRole('button', { name: 'Download or delete' }).click();
    await page.getByRole('menuitem', { name: 'Markdown' }).click();
    const unsaved = page.getByRole('alert').filter({ has: page.getByRole('button', { name: 'Try again' }) });
    await unsaved.getByText(/does not answer/).waitFor();
    await page.unroute('**/export?*');
    const download = page.waitForEvent('download');
    await unsaved.getByRole('button', { name: 'Try again' }).click();
    assert.match((await download).suggestedFilename(), /\.md$/);
    await unsaved.waitFor({ state: 'detached' });

    await send(page, 'Tell me slowly about the harbour.');
    await page.locator('[data-testid=running-reply] .prose-reply').getByText(/\w/).first().waitFor();
    await page.route('**/interrupt', (route) => route.abort());
    await page.getByRole('button', { name: 'Stop' }).click();
    await told(/does not answer/);
    await page.unroute('**/interrupt');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('[data-seq="4"]').getByText('stopped').waitFor();
    await page.getByText(/does not answer/).waitFor({ state: 'detached' });
  });
});

test('a part of the history that did not come is told where its reader looks', async () => {
  const id = await begun(...Array.from({ length: 40 }, (_, number) => `Message ${number}. ${'More of it. '.repeat(30)}`));
  await withPage({ allows: ['503'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="40"]').waitFor();
    await page.waitForTimeout(500);
    await page.route('**/messages?*', (route) => route.fulfill({ status: 503, json: { detail: 'The database is away.' } }));
    await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'Number 41.' }] });
    const told = page.getByRole('alert').getByText('The database is away.');
    await told.waitFor();
    assert.ok(await told.evaluate((one) => document.elementFromPoint(one.getBoundingClientRect().x + 2, one.getBoundingClientRect().y + 2) === one));
    await page.unroute('**/messages?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('[data-seq="41"]').waitFor();
  });
});

test('lists and views that found no service are there once it answers, and nobody has to press anything', async () => {
  const id = await begun('The harbour.');
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    await page.route(/\/(presets|conversations)(\?|$)/, (route) => route.abort());
    await open(page);
    await page.getByText(/does not answer/).nth(1).waitFor();
    await page.unrouteAll();
    await page.getByText('How older messages are kept').click();
    await page.getByRole('radio').first().waitFor();
    await page.getByRole('navigation', { name: 'Conversations' }).getByRole('button').first().waitFor();
    await page.getByText(/does not answer/).waitFor({ state: 'detached' });
    await open(page, `?c=${id}&view=settings`);
    await page.getByRole('button', { name: 'Change preset' }).waitFor();
  });
});

test('a draft outlives a reload, and its conversation: it may be sent in a new one', async () => {
  const id = await begun('A secret.');
  await withPage({ allows: ['404'] }, async (page) => {
    await open(page, `?c=${id}`);
    await field(page).fill('Half a thought\nand more');
    await page.reload();
    await field(page).waitFor();
    assert.equal(await field(page).inputValue(), 'Half a thought\nand more');
    await page.locator('[data-seq="1"]').waitFor();
    await page.waitForTimeout(500);
    await api('DELETE', `/conversations/${id}`);
    await page.getByTestId('left-draft').getByText('Half a thought').waitFor();
    await page.getByRole('button', { name: 'Take it to a new conversation' }).click();
    await page.waitForURL((url) => !url.search);
    assert.equal(await field(page).inputValue(), 'Half a thought\nand more');
    await page.goBack();
    await page.getByText('No such conversation.').waitFor();
    assert.equal(await page.getByTestId('left-draft').count(), 0);
  });
});

test('what is begun or attached over a broken connection, and once more, is there once', async () => {
  const words = `Only one of ${Math.random()}`;
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    const arrives = async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return route.abort();
    };
    await open(page);
    await page.route('**/conversations', arrives);
    await send(page, words);
    await page.getByText(/does not answer/).waitFor();
    await page.unroute('**/conversations');
    await field(page).press('Enter');
    await page.locator('[data-seq="2"]').waitFor();
    const { data } = await api('GET', '/conversations?limit=5');
    assert.equal(data.filter((one) => one.title === words).length, 1);

    await page.route('**/files?*', arrives);
    await page.getByRole('button', { name: 'Attach files' }).click();
    const chosen = { name: 'berths.csv', mimeType: 'text/csv', buffer: Buffer.from('berth,length') };
    await page.getByRole('dialog').locator('input[type=file]').setInputFiles([chosen]);
    const refused = page.getByRole('alert').filter({ hasText: 'berths.csv' });
    await refused.getByText(/does not answer/).waitFor();
    await page.unroute('**/files?*');
    await refused.getByRole('button', { name: 'Try again' }).click();
    await refused.waitFor({ state: 'detached' });
    assert.equal((await api('GET', `/conversations/${conversationOf(page)}/files`)).data.length, 1);
  });
});

test('a message that is on its way arrives, or comes back, though its writer looks at something else', async () => {
  const id = await begun();
  await withPage({ allows: ['429'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    let arrives = true;
    await page.route('**/ui', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await new Promise((resolve) => setTimeout(resolve, 600));
      return arrives ? route.continue().catch(() => undefined) : route.fulfill({ status: 429, json: { code: 'rate_limited' } }).catch(() => undefined);
    });
    const sent = () => page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/ui'));
    const leave = async (words) => {
      const asked = sent();
      await send(page, words);
      await asked;
      await tab(page, 'State');
      await page.waitForTimeout(1_500);
      await tab(page, 'Chat');
    };
    await leave('Arrives');
    await page.locator('[data-seq="1"]').getByText('Arrives').waitFor();
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal(await field(page).inputValue(), '');
    arrives = false;
    await leave('Comes back');
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'Comes back');
  });
});

test('a message that was on its way when the page was loaded again comes back, unless it had arrived', async () => {
  const id = await begun();
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    const held = (path, answer) => page.route(path, (route) => (route.request().method() === 'POST' ? answer(route) : route.continue()));
    const again = async () => {
      await page.reload();
      await field(page).waitFor();
      await page.unrouteAll({ behavior: 'ignoreErrors' });
    };
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.waitForTimeout(300);
    await held('**/ui', (route) => route.abort());
    await send(page, 'Lost on its way.');
    await page.waitForTimeout(300);
    await again();
    assert.equal(await field(page).inputValue(), 'Lost on its way.');
    assert.equal((await api('GET', `/conversations/${id}/messages`)).data.length, 0);

    let arrived;
    await held('**/ui', (route) => (arrived = route.fetch()));
    await field(page).press('Enter');
    await page.waitForTimeout(300);
    await arrived;
    // Where nothing can be read at first, nor after a second reload.
    await page.route('**/messages?*', (route) => route.abort());
    await page.reload();
    await field(page).waitFor();
    await field(page).press('End');
    await page.keyboard.type(' And');
    await again();
    await page.locator('[data-seq="2"]').waitFor();
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'And');
    await field(page).fill('');

    await open(page);
    await held('**/conversations', () => undefined);
    await send(page, 'The first words.');
    await page.waitForTimeout(300);
    await again();
    assert.equal(await field(page).inputValue(), 'The first words.');
  });
});

test('what had come of a reply that failed stays to be read, until the message is asked again', async () => {
  const id = await begun();
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.waitForTimeout(300);
    const chunks = [
      { type: 'start', messageId: 'm' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'The first half of it' },
      { type: 'data-compaction', id: 'c', data: { status: 'running', trigger: 'mid_turn' } },
      { type: 'error', errorText: JSON.stringify({ code: 'model_failed', detail: 'no', reason: 'server_error' }) },
    ];
    const fails = async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await api('POST', `/conversations/${id}/messages`, { role: 'user', content: 'What is it?' });
      return route.fulfill({ contentType: 'text/event-stream', body: chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('') });
    };
    await page.route('**/ui', fails);
    await send(page, 'What is it?');
    await page.getByText(/error of the provider/).waitFor();
    await page.getByText('The first half of it').waitFor();
    await page.getByText(/is not stored/).waitFor();
    assert.equal(await page.getByTestId('running-reply').getByText(/Compacting/).count(), 0, 'what failed with its turn runs no longer');
    await page.unroute('**/ui');
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal(await page.getByText('The first half of it').count(), 0);

    await page.route('**/ui', fails);
    chunks.splice(1, 2);
    await send(page, 'What is it?');
    await page.getByText(/error of the provider/).waitFor();
    assert.equal(await page.getByText(/is not stored/).count(), 0, 'nothing came');
    const { data } = await api('GET', `/conversations/${id}/messages`);
    const body = JSON.stringify({ id, trigger: 'regenerate-message', messageId: data.at(-1).id });
    await fetch(`${SERVICE}/conversations/${id}/ui`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body }).then((told) => told.text());
    await page.locator('[data-seq="4"]').waitFor();
    await page.getByText(/error of the provider/).waitFor({ state: 'detached' });
    assert.equal(await page.getByText('The first half of it').count(), 0);
  });
});

test('a link to a message that cannot be leads to the conversation', async () => {
  const id = await begun('Are you there?', 'Yes, I am.');
  await withPage({}, async (page) => {
    for (const number of ['-5', '99999999999999999999', '1.5', 'x']) {
      await open(page, `?c=${id}&m=${number}`);
      await page.locator('[data-seq="2"]').waitFor();
    }
  });
});

test('the first words of a conversation go to no other one', async () => {
  const other = await begun('Hello.', 'Hi.');
  await api('PATCH', `/conversations/${other}`, { title: `Another ${other}` });
  await withPage({}, async (page) => {
    await open(page);
    let go = () => {};
    const held = new Promise((resolve) => (go = resolve));
    await page.route('**/messages?*', async (route) => {
      if (!route.request().url().includes(other)) await held;
      return route.continue().catch(() => undefined);
    });
    await send(page, 'For the new one alone.');
    await page.waitForURL(/\?c=/);
    await page.waitForTimeout(300);
    await page.getByText(`Another ${other}`).click();
    await page.locator('[data-seq="2"]').waitFor();
    await page.waitForTimeout(500);
    go();
    assert.equal((await api('GET', `/conversations/${other}/messages`)).data.length, 2);
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'For the new one alone.');
  });
});

test('a page without a connection says so, and goes on by itself', async () => {
  const id = await begun('Are you there?', 'Yes, I am.');
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    let isAway = false;
    await page.route(/\/(events|messages|ui)(\?|$|\/)/, (route) => (isAway ? route.abort() : route.continue()));
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="2"]').waitFor();
    await page.waitForTimeout(500);
    isAway = true;
    await hide(page, true);
    await page.waitForTimeout(5_200);
    await hide(page, false);
    await page.getByRole('status').getByText('Not connected to the service.').waitFor();
    await send(page, 'Hello?');
    await page.getByTestId('thread').getByText(/does not answer/).waitFor();
    isAway = false;
    await page.getByText(/does not answer/).first().waitFor({ state: 'detached' });
    await page.getByText('Not connected to the service.').waitFor({ state: 'detached' });
    assert.equal(await field(page).inputValue(), 'Hello?');
  });
});

/** As a browser tells the page that another tab is in front. */
const hide = (page, hidden) =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);

test('a tab that nobody sees holds no connection, and has everything when it is looked at again', async () => {
  const id = await begun('One.', 'Two.');
  await withPage({}, async (page) => {
    const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/events?'));
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="2"]').waitFor();
    await page.waitForTimeout(500);
    await hide(page, true);
    await ended;
    await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'Three.' }] });
    await page.waitForTimeout(1500);
    assert.equal(await page.locator('[data-seq="3"]').count(), 0, 'control: nothing came meanwhile');
    await hide(page, false);
    await page.locator('[data-seq="3"]').waitFor();
  });
});

test('a conversation that is deleted elsewhere is shown no longer, nor listed, and each view says so', async () => {
  const id = await begun('A secret.');
  const title = `Kept until ${id}`;
  await api('PATCH', `/conversations/${id}`, { title });
  await withPage({ allows: ['404'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="1"]').waitFor();
    const listed = page.getByRole('navigation', { name: 'Conversations' }).getByText(title);
    await listed.waitFor();
    await page.waitForTimeout(500);
    await api('DELETE', `/conversations/${id}`);
    await page.getByText('No such conversation.').waitFor();
    assert.equal(await page.getByText('A secret.').count(), 0);
    await listed.waitFor({ state: 'detached' });
    for (const name of ['State', 'Context', 'Stats', 'Timeline', 'Settings']) {
      await tab(page, name);
      await page.locator('main').getByText('No such conversation.').waitFor();
    }
  });
});

test('no reply breaks the page, and what it says in angle brackets is read', async () => {
  const id = await begun('Hi.', 'See [this](#segment-%E0%A4%A), List<String> and <img src=x onerror=alert(1)>.\n\n- [x] a<br>b');
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    const told = await page.locator('[data-seq="2"]').innerText();
    assert.match(told, /^See this, List<String> and <img src=x onerror=alert\(1\)>\.\s+☑ a\nb/);
    assert.equal(await page.locator('[data-seq="2"] img').count(), 0);
  });
});

test('a part that cannot be loaded fails alone, and so does a search', async () => {
  const id = await begun('The harbour.');
  await withPage({ allows: ['404', 'ERR_FAILED', 'ChunkLoadError'] }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.getByRole('button', { name: 'Search in this conversation' }).click();
    await page.route('**/search?*', (route) => route.abort());
    await page.getByRole('dialog').getByRole('searchbox').fill('harbour');
    await page.getByRole('dialog').getByText(/does not answer/).waitFor();
    assert.equal(await page.getByText('Nothing found.').count(), 0);
    await page.keyboard.press('Escape');

    await page.route('**/_next/static/chunks/**', (route) => route.fulfill({ status: 404 }));
    await tab(page, 'Stats');
    await page.getByText(/could not be loaded/).waitFor();
    await tab(page, 'Chat');
    await page.locator('[data-seq="1"]').waitFor();
    await field(page).fill('Half a thought');

    // What failed is loaded once it can be, and nothing is lost with it.
    await tab(page, 'Timeline');
    await page.getByText(/could not be loaded/).waitFor();
    await page.unroute('**/_next/static/chunks/**');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Message stored').first().waitFor();
    await tab(page, 'Stats');
    await page.getByText('Tokens saved by').first().waitFor();
    await tab(page, 'Chat');
    assert.equal(await field(page).inputValue(), 'Half a thought');
  });
});

test('a browser that keeps nothing shows the page', async () => {
  await withPage({}, async (page) => {
    await page.addInitScript(() =>
      Object.defineProperty(window, 'localStorage', {
        get() {
          throw new DOMException('forbidden', 'SecurityError');
        },
      }),
    );
    await open(page);
    await field(page).waitFor();
  });
});

test('a picture is pasted, and the Enter that ends a composed word sends nothing', async () => {
  const id = await begun();
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await field(page).fill('日本');
    await field(page).evaluate((area) =>
      area.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true })),
    );
    assert.equal(await field(page).inputValue(), '日本');
    const paste = (...texts) =>
      field(page).evaluate((area, given) => {
        const clipboardData = new DataTransfer();
        clipboardData.items.add(new File(['berth,length'], 'berths.csv', { type: 'text/csv' }));
        for (const text of given) clipboardData.setData('text/plain', text);
        area.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
      }, texts);
    await paste('berth length');
    await page.waitForTimeout(300);
    assert.equal(await page.getByRole('dialog').count(), 0, 'control: of cells of a table the words are meant');
    await paste();
    await page.getByRole('dialog').getByRole('link', { name: 'berths.csv' }).waitFor();
  });
});

test('all of what is shown is printed, dark on white', async () => {
  const id = await begun(...Array.from({ length: 40 }, (_, number) => `Message ${number}. ${'More of it. '.repeat(30)}`));
  await withPage({ dark: true }, async (page) => {
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="40"]').waitFor();
    const ink = () => page.evaluate(() => Number.parseFloat(getComputedStyle(document.body).color.replace(/^\D+/, '')));
    const light = await ink();
    await page.emulateMedia({ media: 'print' });
    const [shown, whole] = await page
      .getByTestId('thread')
      .evaluate((box) => [document.documentElement.scrollHeight, box.scrollHeight]);
    assert.ok(shown >= whole && whole > 2000, `${shown} of ${whole} pixels`);
    assert.ok((await ink()) < light / 2, 'dark letters');
    assert.equal(await field(page).isVisible(), false);
  });
});

test('what is erased in another tab goes from below the replies and from an opened compaction too', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 4000 } });
  const messages = Array.from({ length: 8 }, (_, place) => ({ role: place % 2 ? 'assistant' : 'user', content: facts(8, place * 8) }));
  messages[2].content = 'We decided to keep SECRET as the password of the quay.';
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  await withPage({}, async (page) => {
    // As if that message had been recalled for the replies, until it is erased.
    let isErased = false;
    await page.route('**/messages?format=ui*', async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      const recalled = { type: 'data-recalled', id: 'recalled', data: [{ segment_id: null, level: 'full', seqs: [3] }] };
      const source = { type: 'source-document', sourceId: 'seq:3', title: 'We decided to keep SECRET' };
      const replies = isErased ? [] : json.data.filter((entry) => entry.role === 'assistant');
      for (const reply of replies) reply.parts.push(recalled, source);
      await new Promise((resolve) => setTimeout(resolve, 300));
      await route.fulfill({ json }).catch(() => undefined);
    });
    await api('POST', `/conversations/${id}/compact`);
    await open(page, `?c=${id}`);
    await page.getByTestId('sources').first().getByText('SECRET').waitFor();
    await page.getByTestId('compaction').getByRole('button').first().click();
    await page.getByTestId('compaction-state').getByText('SECRET').first().waitFor();
    await page.waitForTimeout(500);
    const { data } = await api('GET', `/conversations/${id}/messages`);
    isErased = true;
    await api('DELETE', `/conversations/${id}/messages/${data.find((one) => one.content.includes('SECRET')).id}`);
    await page.waitForFunction(() => !document.querySelector('main').innerText.includes('SECRET'));
  });
});
