/** A long history scrolls: a bounded part of it is in the page, from its end to its beginning. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, open, send, settled, withPage } from './browser.mjs';

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
