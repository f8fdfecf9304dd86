/** What lies over the page: "back" closes it, it gives way to what it opens, and it tells a thing once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, facts, open, withPage } from './browser.mjs';

const dialog = (page) => page.getByRole('dialog');
const closed = (page) => dialog(page).waitFor({ state: 'detached' });
const placeOf = (page) => new URL(page.url()).search;

test('back closes what lies over the page, and then leads to the place before', async () => {
  const title = `Harbour ${Math.random()}`;
  const { id } = await api('POST', '/conversations', { title });
  await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'The harbour at night.' }] });
  await withPage({ phone: true }, async (page) => {
    const list = () => page.getByRole('button', { name: 'Conversations', exact: true }).click();
    await open(page);
    await list();
    await dialog(page).waitFor();
    await page.goBack();
    await closed(page);
    assert.equal(placeOf(page), '');

    // Closed otherwise, or left for what it led to, it leaves nothing behind to go back to.
    await list();
    await dialog(page).getByRole('button', { name: 'Close' }).click();
    await closed(page);
    await list();
    await dialog(page).getByText(title).click();
    await page.locator('[data-seq="1"]').waitFor();
    await closed(page);
    await page.getByRole('button', { name: 'Settings', exact: true }).click();
    await page.getByRole('button', { name: 'Search in this conversation' }).click();
    await dialog(page).getByRole('searchbox').fill('night');
    await dialog(page).getByRole('button', { name: /#1\b/ }).click();
    await page.locator('[data-seq="1"].marked').waitFor();
    await page.waitForTimeout(300);
    await page.goBack();
    await page.getByLabel('System prompt').waitFor();
    await page.goBack();
    await page.locator('[data-seq="1"]').waitFor();
    assert.equal(placeOf(page), `?c=${id}`);
    await page.goBack();
    await page.getByText('What would you like to talk about?').waitFor();
  });
});

test('an original to which a comparison leads is not covered by it', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 4000 } });
  for (let round = 0; round < 2; round += 1) {
    const messages = Array.from({ length: 8 }, (_, place) => ({ role: place % 2 ? 'assistant' : 'user', content: facts(8, (round * 8 + place) * 8) }));
    await api('POST', `/conversations/${id}/messages/batch`, { messages });
    await api('POST', `/conversations/${id}/compact`);
  }
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    const fold = page.getByTestId('compaction').last();
    await fold.getByRole('button').first().click();
    await fold.getByRole('button', { name: /^Compare with version/ }).click();
    const original = dialog(page).getByRole('button', { name: /^Open original message/ }).first();
    const seq = /\d+/.exec(await original.innerText())[0];
    await original.click();
    await page.locator(`[data-seq="${seq}"].marked`).waitFor();
    await closed(page);
  });
});

test('of a segment of a megabyte the beginning is shown, and the rest when it is asked for', async () => {
  const { id } = await api('POST', '/conversations', {});
  const messages = [{ role: 'user', content: 'And then?' }, { role: 'assistant', content: 'See [the harbour →L1:one].' }];
  await api('POST', `/conversations/${id}/messages/batch`, { messages });
  const long = 'The harbour at night. '.repeat(50_000);
  const message = { id: 'm', seq: 1, role: 'user', content: long };
  await withPage({}, async (page) => {
    await page.route('**/segments/one?*', (route) => {
      const level = new URL(route.request().url()).searchParams.get('level');
      return route.fulfill({ json: { topic: 'The harbour', level, content: long, messages: level === 'full' ? [message] : [] } });
    });
    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: /the harbour →L1/ }).click();
    const shown = async () => (await dialog(page).innerText()).length;
    const whole = dialog(page).getByRole('button', { name: /^Show all [\d,]+ characters/ });
    await whole.waitFor();
    assert.ok((await shown()) < 50_000, `${await shown()} characters are shown`);
    await dialog(page).getByRole('group').getByRole('button').nth(1).click();
    await dialog(page).locator('li').waitFor({ state: 'detached' });
    assert.ok((await shown()) < 50_000);
    await whole.click();
    assert.ok((await shown()) > 1_000_000);
  });
});

test('a file that was refused is told once, and stays to be looked at', async () => {
  const { id } = await api('POST', '/conversations', {});
  await withPage({ allows: ['415', '422'] }, async (page) => {
    const tab = (name) => page.getByRole('button', { name, exact: true }).click();
    await open(page, `?c=${id}`);
    await page.getByTestId('gauge').waitFor();
    await page.getByRole('button', { name: 'Attach files' }).click();
    await dialog(page).locator('input[type=file]').setInputFiles([{ name: 'none.txt', mimeType: 'text/plain', buffer: Buffer.from('') }]);
    const told = dialog(page).getByRole('alert').getByText('The file is empty.');
    await told.waitFor();
    await page.keyboard.press('Escape');
    await closed(page);
    await tab('State');
    await page.getByText(/There is no state yet/).waitFor();
    await tab('Chat');
    await page.getByTestId('gauge').waitFor();
    await page.waitForTimeout(500);
    assert.equal(await dialog(page).count(), 0);
    await page.getByRole('button', { name: 'Attach files' }).click();
    await told.waitFor();
  });
});
