/** Each view, in both languages and themes, at a desk and on a phone: it says something, fits, and is accessible. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { api, facts, faults, open, shot, withPage } from './browser.mjs';

const VIEWS = ['chat', 'state', 'context', 'stats', 'timeline', 'settings'];
const WAYS = [
  { name: 'desk', language: 'en', dark: false, phone: false },
  { name: 'desk-dark-ru', language: 'ru', dark: true, phone: false },
  { name: 'phone-ru', language: 'ru', dark: false, phone: true },
  { name: 'phone-dark', language: 'en', dark: true, phone: true },
];
let id = '';

before(async () => {
  ({ id } = await api('POST', '/conversations', { title: 'Lantern Nights', policy: { context_window: 4000 } }));
  for (let round = 0; round < 3; round += 1) {
    await api('POST', `/conversations/${id}/chat`, { content: `We decided to keep the quay. ${facts(14, round * 14)}` });
  }
  await api('POST', `/conversations/${id}/compact`);
  await api('POST', `/conversations/${id}/chat`, { content: 'Which pier does lamp number 3 stand at?' });
  await api('POST', `/conversations/${id}/compact`);
});

for (const way of WAYS) {
  test(`views, ${way.name}`, async () => {
    await withPage(way, async (page) => {
      for (const view of ['new', ...VIEWS]) {
        await open(page, view === 'new' ? '' : `?c=${id}&view=${view}`);
        await page.locator('main').getByText(/\p{L}/u).first().waitFor();
        await page.waitForTimeout(700);
        if (view === 'chat') await page.getByTestId('gauge').waitFor();
        await shot(page, `${view}-${way.name}`);
        const width = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(width <= 0, `${view} is ${width} pixels too wide`);
        if (view !== 'new') {
          const tab = await page.locator('nav [aria-current=page]').last().boundingBox();
          const most = await page.evaluate(() => window.innerWidth);
          assert.ok(tab.x > -1 && tab.x + tab.width < most + 1, `the tab of ${view} is out of sight`);
        }
        assert.deepEqual(await faults(page), [], view);
        const dark = await page.evaluate(() => document.documentElement.classList.contains('dark'));
        assert.equal(dark, way.dark);
        assert.equal(await page.evaluate(() => document.documentElement.lang), way.language);
      }
      await open(page, `?c=${id}`);
      await page.getByTestId('compaction').first().getByRole('button').first().click();
      await page.getByTestId('compaction-state').locator('dl').waitFor();
      await page.getByTestId('gauge').click();
      await page.waitForTimeout(300);
      await shot(page, `gauge-${way.name}`);
      assert.deepEqual(await faults(page), [], 'an opened divider and gauge');
    });
  });
}

test('the words of a table stay whole, and a long line of the list is one line', async () => {
  const { id: other } = await api('POST', '/conversations', { title: 'Lamps' });
  const table = '| Lamp | Cost | Where it stands at night | Remark |\n|---|---|---|---|\n| 1 | 53 € | pier 10 | _ |'.replace('_', 'x'.repeat(400));
  await api('POST', `/conversations/${other}/messages/batch`, { messages: [{ role: 'user', content: 'Hm?' }, { role: 'assistant', content: table }] });
  for (const way of [{ language: 'ru', phone: true }, { language: 'ru' }]) {
    await withPage(way, async (page) => {
      await page.route('**/conversations?*', async (route) => {
        const { data, ...rest } = await (await route.fetch()).json();
        await route.fulfill({ json: { ...rest, data: data.map((one) => ({ ...one, message_count: one.id === other ? 20_000 : 1 })) } });
      });
      await open(page, `?c=${other}`);
      const cell = (words) => page.getByText(words, { exact: true }).last();
      await cell('Lamp').waitFor();
      const lines = (found) => found.evaluate((one) => new Set([...one.getClientRects()].map((line) => line.top)).size);
      for (const words of ['Lamp', 'Cost', '53 €', 'pier 10']) assert.equal(await lines(cell(words)), 1, words);
      const wide = await cell('Remark').evaluate((one) => one.closest('table').offsetWidth);
      assert.ok(wide < 1_100, `one long word makes it ${wide} pixels wide`);
      if (way.phone) await page.getByRole('button', { name: 'Беседы', exact: true }).click();
      const row = page.getByRole('navigation', { name: 'Беседы' }).getByRole('button').filter({ hasText: /20.000/, visible: true });
      await row.waitFor();
      assert.ok((await row.boundingBox()).height < 64, 'title and figures are a line each');
      const isCut = await row.getByText(/20.000/).evaluate((one) => one.scrollWidth > one.clientWidth);
      assert.ok(!isCut, 'of this year no date takes the room');
    });
  }
});

test('what went wrong is told in the language of its reader', async () => {
  await withPage({ language: 'ru', allows: ['404', '409'] }, async (page) => {
    await page.route('**/pin', (route) =>
      route.fulfill({
        status: 409,
        json: { code: 'pin_budget_exceeded', title: 'Нет места, чтобы держать это дословно', detail: 'the message has 5 tokens', size: 5, protected_tokens: 400, limit: 403 },
      }),
    );
    await open(page, `?c=${id}`);
    await page.locator('[data-seq]').last().hover();
    await page.locator('[data-seq]').last().getByRole('button', { name: /^Закрепить/ }).click();
    const told = page.locator('main').getByRole('alert');
    assert.match(await told.innerText(), /^Токенов здесь: 5, .* 400\. .* 403/);
    await open(page, '?c=00000000-0000-0000-0000-000000000001');
    await told.waitFor();
    assert.equal(await told.innerText(), 'Не найдено.');
  });
});

test('control: a picture without words, and words that nobody can read, are found', async () => {
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.evaluate(() => {
      document.querySelector('main').insertAdjacentHTML('beforeend', '<img src="data:,"><p style="color:#ddd">pale</p>');
    });
    const found = (await faults(page)).join();
    assert.match(found, /image-alt/);
    assert.match(found, /color-contrast/);
  });
});

test('with the keyboard alone a message is sent, and what the gauge says is read', async () => {
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'TEXTAREA');
    await page.keyboard.type('Hello');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    const said = await page.evaluate(() => document.activeElement.querySelector('.sr-only').textContent);
    assert.match(said, /% of the context: [\d,]+ of [\d,]+ tokens\. [\d,]+ tokens? until compaction/);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');

    // A menu shows where one is in it, and the place of what is erased is not lost.
    const look = (found) => found.evaluate((one) => getComputedStyle(one).outlineStyle);
    const { seq } = (await api('POST', `/conversations/${id}/messages`, { role: 'user', content: 'To be erased.' }));
    await page.locator(`[data-seq="${seq}"]`).getByRole('button', { name: 'More' }).press('Enter');
    await page.keyboard.press('ArrowDown');
    assert.equal(await look(page.getByRole('menuitem', { name: 'Erase' })), 'solid');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Erase' }).press('Enter');
    await page.getByText('This message was erased.').waitFor();
    await page.waitForFunction(() => document.activeElement.role === 'log');

    // Colours of the system show no backgrounds.
    await page.emulateMedia({ forcedColors: 'active' });
    assert.equal(await look(page.getByRole('button', { name: 'Chat', exact: true })), 'solid');
    assert.equal(await look(page.getByRole('button', { name: 'State', exact: true })), 'none');
  });
});

test('what happened to a conversation as a whole is told in words', async () => {
  await withPage({ language: 'ru' }, async (page) => {
    const event = (number, type, data = {}) => {
      const told = { id: String(number), type, conversation_id: id, occurred_at: '2026-11-29T10:00:00Z', data, notification: null };
      return `id: ${number}\nevent: ${type}\ndata: ${JSON.stringify(told)}\n\n`;
    };
    const types = ['restored', 'set_aside', 'released'].map((what) => `conversation.${what}`);
    const leftOut = event(9, 'context.threshold', { status: 'ok', reason: 'over_allotment', seq: 1 });
    const body = types.map((type, place) => event(place + 1, type)).join('') + leftOut;
    await page.route('**/events?**', (route) => route.fulfill({ contentType: 'text/event-stream', body }));
    await open(page, `?c=${id}&view=timeline`);
    const rows = page.locator('main li');
    await rows.nth(types.length).waitFor();
    assert.match(await rows.first().innerText(), /Нет места, чтобы держать .* дословно\s*#1$/, 'no threshold, and no word of room');
    assert.ok((await rows.allInnerTexts()).every((text) => /^\d\d:\d\d\s+\p{Script=Cyrillic}/u.test(text)));
  });
});

test('a page whose words do not come asks for them again', async () => {
  await withPage({ allows: ['ERR_FAILED'] }, async (page) => {
    let lost = 0;
    await page.route('**/_next/static/**/*.js', async (route) => {
      const response = await route.fetch();
      const isLost = lost < 3 && (await response.text()).includes('Search titles');
      lost += isLost ? 1 : 0;
      return isLost ? route.abort() : route.fulfill({ response });
    });
    await open(page);
    await page.getByRole('searchbox', { name: 'Search titles' }).waitFor();
    assert.equal(lost, 3);
  });
});
