/** Whoever looks at something stays there, whatever happens meanwhile, and what they wrote stays with them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, conversationOf, facts, open, send, withPage } from './browser.mjs';

const field = (page) => page.getByRole('textbox', { name: 'Message', exact: true });

test('a conversation that has begun takes nobody away from another one', async () => {
  const title = `Another ${Math.random()}`;
  const { id } = await api('POST', '/conversations', { title });
  await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'Hello.' }] });
  const words = `For the new one alone ${Math.random()}`;
  await withPage({}, async (page) => {
    let go = () => {};
    await page.route('**/conversations', async (route) => {
      if (route.request().method() === 'POST') await new Promise((resolve) => (go = resolve));
      return route.continue();
    });
    await open(page);
    const asked = page.waitForRequest((request) => request.method() === 'POST');
    await send(page, words);
    await asked;
    await page.getByText(title).click();
    await page.locator('[data-seq="1"]').waitFor();
    await field(page).fill('Half a thought');
    go();
    const listed = page.getByRole('navigation', { name: 'Conversations' }).getByText(words);
    await listed.waitFor();
    await page.waitForTimeout(500);
    assert.equal(conversationOf(page), id);
    assert.equal(await field(page).inputValue(), 'Half a thought');
    await listed.click();
    await page.waitForFunction((text) => document.querySelector('textarea')?.value === text, words);
    assert.notEqual(conversationOf(page), id);
  });
});

test('whoever reads an earlier version of the state stays at it when another is made', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 4000 } });
  const fold = async (round) => {
    const messages = Array.from({ length: 8 }, (_, place) => ({ role: place % 2 ? 'assistant' : 'user', content: facts(8, (round * 8 + place) * 8) }));
    await api('POST', `/conversations/${id}/messages/batch`, { messages });
    await api('POST', `/conversations/${id}/compact`);
    return (await api('GET', `/conversations/${id}`)).state_version;
  };
  await fold(0);
  const before = await fold(1);
  await withPage({}, async (page) => {
    await open(page, `?c=${id}&view=state`);
    const version = page.getByLabel('Version', { exact: true });
    await version.waitFor();
    assert.equal(await version.inputValue(), String(before));
    await page.waitForTimeout(500);
    const next = await fold(2);
    const option = (number) => version.locator(`option[value="${number}"]`).waitFor({ state: 'attached' });
    await option(next);
    assert.equal(await version.inputValue(), String(next), 'whoever looks at the newest sees the newest');
    await version.selectOption(String(before));
    await option(await fold(3));
    assert.equal(await version.inputValue(), String(before));
  });
});

test('a preset that is changed in another tab is the one that is shown', async () => {
  const { id } = await api('POST', '/conversations', {});
  await withPage({}, async (page) => {
    await open(page, `?c=${id}&view=settings`);
    const choice = page.getByRole('combobox', { name: 'Preset' });
    await choice.waitFor();
    await page.waitForTimeout(500);
    await api('PATCH', `/conversations/${id}`, { preset: 'research' });
    await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'Hello.' }] });
    await page.getByText('Older messages become findings').waitFor();
    assert.equal(await choice.inputValue(), 'research');
    // Of this no event comes: it is read when somebody comes to this window.
    await page.waitForTimeout(1_000);
    await api('PATCH', `/conversations/${id}`, { title: 'Named elsewhere' });
    await page.evaluate(() => window.dispatchEvent(new Event('focus')));
    await page.getByRole('heading', { name: 'Named elsewhere' }).waitFor();
    await page.getByRole('navigation', { name: 'Conversations' }).getByText('Named elsewhere').waitFor();
    await choice.selectOption('handoff');
    await page.getByRole('button', { name: 'Change preset' }).click();
    await page.getByText('Saved.').waitFor();
    assert.equal((await api('GET', `/conversations/${id}`)).preset, 'handoff');
  });
});

test('the end stays in sight while a longer message is written', async () => {
  const { id } = await api('POST', '/conversations', {});
  const messages = Array.from({ length: 12 }, (_, place) => ({ role: place % 2 ? 'assistant' : 'user', content: facts(4, place) }));
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  await withPage({ phone: true }, async (page) => {
    await open(page, `?c=${id}`);
    await page.locator('[data-seq="12"]').waitFor();
    await page.waitForTimeout(500);
    const thread = page.getByTestId('thread');
    const below = () => thread.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    const height = () => thread.evaluate((box) => box.clientHeight);
    const before = await height();
    await field(page).fill('One line.\n'.repeat(6));
    await page.waitForTimeout(300);
    assert.ok((await height()) < before - 60, 'control: the field takes more room');
    assert.ok((await below()) < 2, `${await below()} pixels are below what is shown`);
    await field(page).press('End');
    await page.keyboard.type('One more letter');
    await page.waitForTimeout(300);
    assert.ok((await below()) < 2, `${await below()} pixels are below what is shown once more is typed`);
    for (const turned of [{ width: 780, height: 380 }, page.viewportSize()]) {
      await page.setViewportSize(turned);
      await page.waitForTimeout(300);
      assert.ok((await below()) < 2, `${await below()} pixels are below what is shown on a phone that was turned`);
    }
    for (const [up, lines] of [[20, 9], [600, 3]]) {
      const place = await thread.evaluate((box, further) => (box.scrollTop -= further), up);
      await page.waitForTimeout(200);
      await field(page).fill('One line.\n'.repeat(lines));
      await page.waitForTimeout(300);
      assert.ok(Math.abs((await thread.evaluate((box) => box.scrollTop)) - place) < 2, `who reads ${up} pixels further up stays there`);
    }
  });
});

test('on a phone no field has letters so small that the page is enlarged, Enter begins a line, and no figures are cut', async () => {
  const { id } = await api('POST', '/conversations', {});
  await withPage({ phone: true, touch: true }, async (page) => {
    for (const view of ['chat', 'context', 'settings']) {
      await open(page, `?c=${id}&view=${view}`);
      await page.locator('main :is(input, textarea)').first().waitFor();
      const sizes = await page.locator('main :is(input, textarea, select)').evaluateAll((all) => all.map((one) => Number.parseFloat(getComputedStyle(one).fontSize)));
      assert.ok(Math.min(...sizes) >= 16, `${view}: ${sizes}`);
    }
    assert.match(await page.locator('meta[name=viewport]').getAttribute('content'), /interactive-widget=resizes-content/);
    // The keyboard on its screen has no Shift+Enter.
    await open(page, `?c=${id}`);
    await field(page).click();
    await page.keyboard.type('One');
    await page.keyboard.press('Enter');
    await page.keyboard.type('two');
    assert.equal(await field(page).inputValue(), 'One\ntwo');
    await page.keyboard.press('Control+Enter');
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal((await api('GET', `/conversations/${id}/messages`)).data[0].content, 'One\ntwo');
    // On narrow pages the figures below the field are whole too.
    const figures = page.getByTestId('gauge').locator('[aria-hidden].tabular-nums');
    for (const width of [320, 800]) {
      await page.setViewportSize({ width, height: 740 });
      await open(page, `?c=${id}`);
      await figures.waitFor();
      assert.ok(!(await figures.evaluate((one) => one.scrollWidth > one.clientWidth)), `at ${width} pixels they are cut`);
    }
  });
  // A keyboard and no mouse.
  await withPage({}, async (page) => {
    await page.addInitScript(() => {
      const real = window.matchMedia.bind(window);
      window.matchMedia = (asked) => real(asked.includes('pointer:') ? 'not all' : asked);
    });
    await open(page, `?c=${id}`);
    await field(page).focus();
    await page.keyboard.type('Three');
    await page.keyboard.press('Enter');
    await page.locator('[data-seq="4"]').waitFor();
  });
});
