/** A talk from its first message: compactions, reload in the middle, stop, recall, restore, two tabs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, conversationOf, facts, open, send, settled, shot, withPage } from './browser.mjs';

const byTest = (page, name) => page.getByTestId(name);

test('a talk goes on through compactions', async () => {
  await withPage({}, async (page, context) => {
    await open(page);
    await page.getByText('How older messages are kept').click();
    await page.getByLabel('Context window in tokens').fill('4000');
    await send(page, 'Please remember: the ferry leaves at 17:45 from quay 9.');
    await page.waitForURL(/\?c=/);
    const id = conversationOf(page);
    let seq = 2;
    const replied = async () => {
      await page.locator(`[data-seq="${seq}"]`).waitFor();
      await settled(page);
      seq += 2;
    };
    await replied();
    // Whoever hears the page is told that the reply is there.
    const ended = page.getByRole('status').getByText('The reply has ended.');
    await ended.waitFor({ state: 'attached' });
    assert.match(await page.title(), /^Please remember/);

    /** Says more and more until something was compacted for that reason. */
    const sayUntil = async (trigger, size) => {
      for (let round = 0; round < 8; round += 1) {
        await send(page, `And these too. ${facts(size, seq * 40)}`);
        await replied();
        await page.waitForTimeout(1500);
        const { data } = await api('GET', `/conversations/${id}/compactions`);
        if (data.some((one) => one.status === 'applied' && one.trigger === trigger)) return;
      }
      assert.fail(`nothing was compacted by ${trigger}`);
    };
    // In the background, once the context is above its threshold.
    await sayUntil('background', 18);
    await byTest(page, 'compaction').first().waitFor();
    assert.match(await byTest(page, 'compaction').first().innerText(), /in the background/);
    await shot(page, 'background');

    // Inside a turn, before the reply: a message after which too little room would be left.
    await sayUntil('sync', 60);
    await byTest(page, 'compaction').getByText('before a reply').first().waitFor();

    // Something that only the folded messages say is brought back, and opens its original.
    const asked = seq;
    await send(page, 'When does the ferry leave, and from which quay?');
    await replied();
    assert.match(await page.locator(`[data-seq="${asked}"]`).innerText(), /17:45/);

    // A divider opens to the state, an entry to its original.
    const divider = byTest(page, 'compaction').last();
    await divider.getByRole('button').first().click();
    await byTest(page, 'compaction-state').getByText(/State, version/).first().waitFor();
    await shot(page, 'divider');
    const original = byTest(page, 'compaction-state').getByRole('button', { name: /^Open original/ }).first();
    const meant = (await original.innerText()).slice(1);
    await original.click();
    await page.locator(`[data-seq="${meant}"].marked`).waitFor();

    // The same talk in a second tab: both see what either does.
    const second = await context.newPage();
    await open(second, `?c=${id}`);
    await second.locator(`[data-seq="${asked}"]`).waitFor();
    await send(second, 'Thank you.');
    await second.locator(`[data-seq="${seq}"]`).waitFor();
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.locator(`[data-seq="${seq}"]`).waitFor();
    await second.close();
  });
});

test('a reply goes on over a reload, is stopped, and is written again', async () => {
  await withPage({}, async (page) => {
    await open(page);
    await send(page, 'Tell me slowly what you know about the harbour.');
    await page.locator('[data-testid=running-reply] .prose-reply').getByText(/\w/).first().waitFor();
    await page.waitForURL(/\?c=/);
    const id = conversationOf(page);
    await page.reload();
    await page.locator('[data-testid=running-reply] .prose-reply').getByText(/\w/).first().waitFor();
    const selected = () => page.evaluate(() => getSelection().toString());
    await page.evaluate(() => {
      const text = document.createTreeWalker(document.querySelector('[data-testid=running-reply] p'), NodeFilter.SHOW_TEXT).nextNode();
      getSelection().setBaseAndExtent(text, 2, text, 8);
    });
    const before = await selected();
    assert.equal(before.length, 6);
    await page.locator('[data-seq="2"]').waitFor();
    await settled(page);
    assert.equal(await selected(), before, 'though the text has grown, and is in another place');
    const { data } = await api('GET', `/conversations/${id}/messages`);
    assert.deepEqual(data.map((one) => [one.role, one.status]), [['user', 'complete'], ['assistant', 'complete']]);
    assert.equal(await page.locator('[data-role="user"]').count(), 1, 'what was asked is there once');
    const told = await page.locator('[data-seq="2"]').innerText();
    assert.equal(told.split('Offline').length, 2, 'and the reply is');

    await send(page, 'Tell me slowly again, please, and take your time with it.');
    await page.locator('[data-testid=running-reply] .prose-reply').getByText(/\w/).first().waitFor();
    await page.getByRole('button', { name: 'Stop' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('[data-seq="4"]').getByText('stopped').waitFor();
    await settled(page);
    const writes = () => page.waitForFunction(() => document.activeElement.id === 'message');
    await writes();

    await page.locator('[data-seq="4"]').getByRole('button', { name: 'Write this reply again' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    await writes(); // where Escape would stop it
    await page.locator('[data-seq="5"]').waitFor();
    await page.locator('[data-seq="4"]').getByText('Earlier version of the reply').waitFor();
  });
});

test('a state is compared and restored, a message pinned, an anchor set right, the talk downloaded', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Lamps', policy: { context_window: 4000, max_tokens: -1 } });
  const say = (role, content) => ({ role, content });
  await api('POST', `/conversations/${id}/messages/batch`, {
    messages: [
      say('user', 'Let us talk about lamps.'),
      say('assistant', 'Noted.'),
      say('user', `We decided to take lamp 7. ${facts(12)}`),
      say('assistant', 'Fine.'),
      say('user', facts(12, 12)),
      say('assistant', 'Good.'),
      say('user', facts(12, 24)),
      say('assistant', 'Well.'),
    ],
  });
  await api('POST', `/conversations/${id}/compact`);
  await withPage({}, async (page) => {
    await page.addInitScript(() => Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined }));
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="8"]').waitFor();
    await page.locator('[data-seq="2"]').hover();
    await page.locator('[data-seq="2"]').getByRole('button', { name: /^Pin/ }).click();
    await page.locator('[data-seq="2"]').getByText('pinned').waitFor();

    await send(page, `The decision is changed: we take lamp 8 instead. ${facts(20, 40)}`);
    await page.locator('[data-seq="10"]').waitFor();
    await settled(page);
    await page.getByRole('button', { name: 'Compact', exact: true }).click();
    await page.getByRole('dialog').getByLabel('Focus').fill('lamps');
    await page.getByRole('dialog').getByRole('button', { name: 'Compact', exact: true }).click();
    const divider = byTest(page, 'compaction').nth(1);
    await divider.waitFor();
    await page.getByTestId('thread').evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await page.getByRole('button', { name: 'Latest' }).waitFor({ state: 'detached' });
    const { y } = await divider.boundingBox();
    await divider.getByRole('button').first().click();
    await byTest(page, 'compaction-state').locator('dl').waitFor();
    await page.getByRole('button', { name: 'Latest' }).waitFor();
    assert.equal((await divider.boundingBox()).y, y, 'what is opened at the end of the history stays where it is');

    await page.getByRole('button', { name: 'State', exact: true }).click();
    await page.getByLabel('Compare with').selectOption('1');
    await byTest(page, 'difference').waitFor();
    await shot(page, 'difference');
    await page.getByLabel('Version').selectOption('1');
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByText('restored', { exact: true }).waitFor();
    assert.equal((await api('GET', `/conversations/${id}`)).state_version, 3);

    await page.getByRole('button', { name: 'Chat', exact: true }).click();
    const anchor = byTest(page, 'anchor').first();
    await anchor.click();
    await page.getByRole('menuitemradio', { name: 'resolved' }).click();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.querySelector('[data-testid=anchor]')?.className.includes('line-through'));

    await page.locator('[data-seq="2"]').hover();
    await page.locator('[data-seq="2"]').getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Copy' }).click();
    const field = page.getByRole('textbox', { name: 'Message' });
    await page.waitForTimeout(200);
    await field.press('Control+v');
    assert.equal(await field.inputValue(), 'Noted.', 'copied without the clipboard that browsers offer over https');

    await page.getByRole('button', { name: 'Download or delete' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('menuitem', { name: 'Markdown' }).click();
    assert.match((await download).suggestedFilename(), /\.md$/);
  });
});

test('each line runs in its own direction', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Directions' });
  const table = '\n\n| مدينة | رصيف بعيد |\n|---|---|\n| غراتس | 40 |';
  const mixed = 'مرحبا, this is Sara.\nAnd مرحبا again.';
  await api('POST', `/conversations/${id}/messages/batch`, {
    messages: [{ role: 'user', content: mixed, created_at: '2025-03-04T12:10:00Z' }, { role: 'assistant', content: `مرحبا, **Sara**.\n\nHello, مرحبا.${table}` }],
  });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    /** Where a word begins, in pixels from the left. */
    const left = (seq, word, nth = 0) =>
      page.locator(`[data-seq="${seq}"]`).evaluate(
        (row, [wanted, number]) => {
          const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
          let count = 0;
          for (let node = texts.nextNode(); node; node = texts.nextNode()) {
            for (let at = node.data.indexOf(wanted); at >= 0; at = node.data.indexOf(wanted, at + 1)) {
              if (count++ < number) continue;
              const range = document.createRange();
              range.setStart(node, at);
              range.setEnd(node, at + wanted.length);
              return range.getBoundingClientRect().left;
            }
          }
          throw new Error(`there is no ${wanted}`);
        },
        [word, nth],
      );
    await page.locator('[data-seq="2"]').waitFor();
    assert.match(await page.locator('[data-seq="1"] time').innerText(), /^4 Mar 2025, \d\d:10$/);
    assert.match(await page.locator('[data-seq="2"] time').innerText(), /^\d\d:\d\d$/, 'of today only the time');
    assert.ok((await left(1, 'مرحبا')) > (await left(1, 'Sara')), 'a line that begins in Arabic, from the right');
    assert.ok((await left(1, 'And')) < (await left(1, 'مرحبا', 1)), 'the next one, from the left');
    assert.ok((await left(2, 'مرحبا')) > (await left(2, 'Sara')), 'in a reply too');
    assert.ok((await left(2, 'Hello')) < (await left(2, 'مرحبا', 1)));
    assert.ok((await left(2, 'مدينة')) > (await left(2, 'رصيف')), 'the columns of its table');
    assert.ok((await left(2, '40')) > (await left(2, 'رصيف')), 'and its numbers, in their column');
  });
});

test('every version of a state can be chosen, however many there are', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 4000, max_tokens: -1 } });
  const say = (role, content) => ({ role, content });
  await api('POST', `/conversations/${id}/messages/batch`, {
    messages: ['Let us talk about lamps.', `We decided to take lamp 7. ${facts(12)}`, facts(12, 12), facts(12, 24)].flatMap((text) => [
      say('user', text),
      say('assistant', 'Noted.'),
    ]),
  });
  const { status } = await api('POST', `/conversations/${id}/compact`);
  assert.equal(status, 'applied');
  for (let round = 0; round < 101; round += 1) await api('POST', `/conversations/${id}/restore`, { state_version: 1 });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}&view=state`);
    const versions = page.locator('select').first();
    const shown = () => versions.locator('option').count();
    await page.getByRole('button', { name: 'Show more' }).waitFor();
    assert.equal(await shown(), 100);
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.waitForFunction(() => document.querySelectorAll('select')[0].options.length === 102);
    await versions.selectOption('1');
    await page.getByText('made by a compaction').waitFor();
  });
});

test('all that a message says is shown, in its parts too, and what stands twice is shown once', async () => {
  const { id } = await api('POST', '/conversations', {});
  const text = (said) => ({ type: 'text', text: said });
  const formulas = ['The sum \\(a*b*c\\) is $x_1*y*z$.', '$$\na \\\\ \\{b\\}\n$$', '\\[\n\\sum_{i} *i*\n\\]'];
  const call = { type: 'tool_call', id: 'c1', name: 'weather', arguments: { city: 'Graz' } };
  const result = { type: 'tool_result', tool_call_id: 'c1', name: 'weather', content: 'Blue sky.' };
  const messages = [
    { role: 'user', content: '', parts: [text('Only a part.'), text('And one more.')] },
    { role: 'assistant', content: 'See the blueberries:', parts: [text('blue'), text('blueberries'), call] },
    { role: 'tool', content: 'Blue sky.', parts: [result] },
    { role: 'assistant', content: 'Done.', parts: [text('Done.')] },
    { role: 'user', content: 'And in TeX?' },
    { role: 'assistant', content: `${formulas.join('\n')}\n\nIt costs $5, *not* $6; \`\\(c*d*e\\)\` is code. See[^1].\n\n[^1]: A note.` },
    { role: 'assistant', content: 'Set $HOME, *not* `$PATH`, as in [a lock](https://example.org/Lock_\\(water\\)).[^1]\n\n[^1]: Its own.' },
    { role: 'assistant', content: "Run:\n\n    sed 's/ \\(a\\) / b /'\n\n    $a*b$\n\n1. Or:\n\n    \\(c*d*e\\)\n\nSee[^1].\n\n[^1]: A note.\n\n    \\(f*g*h\\)" },
  ];
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    const said = async (seq) => (await page.locator(`[data-seq="${seq}"]`).innerText()).split('\n').filter(Boolean);
    await page.locator('[data-seq="4"]').waitFor();
    assert.deepEqual((await said(1)).slice(0, 2), ['Only a part.', 'And one more.']);
    assert.deepEqual((await said(2)).slice(0, 3), ['See the blueberries:', 'blue', 'Calls weather']);
    assert.equal((await said(3))[0], 'Result of weather');
    assert.deepEqual((await said(4)).slice(0, 2), ['Done.', '#4']);
    await page.locator('[data-seq="6"]').waitFor();
    assert.deepEqual((await said(6)).slice(0, 8), [...formulas.flatMap((one) => one.split('\n')), 'It costs $5, not $6; \\(c*d*e\\) is code. See1.']);
    assert.equal(await page.locator('[data-seq="6"] a').first().getAttribute('target'), null, 'a note is in the same place');
    await page.locator('[data-seq="7"]').waitFor();
    assert.equal((await said(7))[0], 'Set $HOME, not $PATH, as in a lock.1');
    assert.equal(await page.locator('[data-seq="7"] a').first().getAttribute('href'), 'https://example.org/Lock_(water)');
    const note = (await page.locator('[data-seq="7"] sup a').getAttribute('href')).slice(1);
    assert.match(await page.locator(`[id="${note}"]`).innerText(), /Its own/);
    const back = (await page.locator(`[id="${note}"] a`).getAttribute('href')).slice(1);
    assert.equal(await page.locator(`[data-seq="7"] sup a[id="${back}"]`).count(), 1);
    await page.locator('[data-seq="8"]').waitFor();
    assert.deepEqual((await said(8)).filter((line) => line.trim()).slice(0, 5), ['Run:', "sed 's/ \\(a\\) / b /'", '$a*b$', 'Or:', '\\(c*d*e\\)'], 'in code no sign is added');
    assert.match(await page.locator('[data-seq="8"]').innerText(), /\\\(f\*g\*h\\\)/, 'a further paragraph of a note is no code');
  });
  await withPage({ language: 'ru' }, async (page) => {
    await open(page, `?c=${id}`);
    const notes = page.locator('[data-seq="7"]').getByRole('heading', { name: 'Сноски' });
    await notes.waitFor({ state: 'attached' });
    await page.locator('[data-seq="7"]').getByRole('link', { name: 'Назад к тексту' }).waitFor();
  });
});

test('a table of thousands of rows does not hold the page up, and is shown whole when asked for', async () => {
  const rows = Array.from({ length: 3000 }, (_, number) => `| ${number} | lamp ${number} |`);
  const { id } = await api('POST', '/conversations', {});
  const fenced = ['```', ...rows.slice(0, 250), '```'].join('\n');
  const content = ['Here:', '', '| n | what |', '|---|---|', ...rows, '', 'That is **all**.', '', fenced].join('\n');
  await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'A table?' }, { role: 'assistant', content }] });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    const reply = page.locator('[data-seq="2"]');
    await reply.getByText('That is all.').waitFor();
    assert.ok((await reply.locator('tr').count()) <= 200);
    assert.match(await reply.locator('pre').innerText(), /lamp 249/);
    await page.evaluate(() => {
      Navigator.prototype.__defineGetter__('clipboard', () => ({ writeText: async (text) => (window.copied = text) }));
    });
    await reply.locator('pre').hover();
    await reply.getByRole('button', { name: 'Copy' }).click();
    await reply.getByRole('status').getByText('Copied').waitFor({ state: 'attached' });
    assert.deepEqual((await page.evaluate(() => window.copied)).trimEnd().split('\n'), rows.slice(0, 250));
    await reply.getByRole('button', { name: 'Show the whole table: 3,000 rows' }).click();
    await reply.getByText('lamp 2999').waitFor();
    assert.equal(await reply.locator('tr').count(), 3001);
  });
});

test('first words that were left before they could be sent are found again, though another talk begins', async () => {
  await withPage({}, async (page) => {
    await open(page);
    let go = () => {};
    const held = new Promise((resolve) => (go = resolve));
    await page.route('**/messages?*', (route) => held.then(() => route.continue()).catch(() => undefined));
    await send(page, 'The first of two.');
    await page.waitForURL(/\?c=/);
    const first = conversationOf(page);
    await page.waitForTimeout(300);
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByRole('heading', { name: 'New conversation' }).waitFor();
    await send(page, 'The second of two.');
    await page.waitForURL((url) => ![null, first].includes(url.searchParams.get('c')));
    go();
    await page.locator('[data-seq="2"]').waitFor();
    await page.getByText('The first of two.').first().click();
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'The first of two.');
  });
});

test('what is being deleted is not called off by closing its dialog, and its failure is told there', async () => {
  const { id } = await api('POST', '/conversations', {});
  await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'One.' }] });
  await withPage({ allows: ['503'] }, async (page) => {
    await open(page, `?c=${id}`);
    let go = () => {};
    const held = new Promise((resolve) => (go = resolve));
    await page.route(`**/conversations/${id}`, async (route) => {
      if (route.request().method() !== 'DELETE') return route.continue();
      await held;
      return route.fulfill({ status: 503, json: { detail: 'The database is away.' } });
    });
    await page.getByRole('button', { name: 'Download or delete' }).click();
    await page.getByRole('menuitem', { name: 'Delete conversation' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete conversation' }).click();
    await page.keyboard.press('Escape');
    assert.ok(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled());
    go();
    await dialog.getByText('The database is away.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
  });
});
