/** Files of a conversation: attached, weighed, shown, saved, removed; and what is said where one is not taken. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { api, conversationOf, faults, open, send, settled, shot, withPage } from './browser.mjs';

const TABLE = 'berth,length\n3,40\n5,60\n';
const REFUSALS = ['409', '413', '415', '422'];
const file = (name, mimeType, content) => ({ name, mimeType, buffer: Buffer.from(content) });
const dialog = (page) => page.getByRole('dialog', { name: /^(Files|Файлы)$/ });
const choose = (page, ...files) => dialog(page).locator('input[type=file]').setInputFiles(files);
const filesOf = async (id) => (await api('GET', `/conversations/${id}/files`)).data;

test('files are attached, weigh in the gauge, stand in the context, are saved and removed', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 4000 } });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: 'Attach files' }).click();
    await choose(page, file('berths.csv', 'application/vnd.ms-excel', TABLE), file('notes.md', '', '# Notes\n'));
    await dialog(page).getByRole('link', { name: 'notes.md' }).waitFor();
    const kept = await filesOf(id);
    assert.deepEqual(kept.map((one) => [one.name, one.media_type]), [['berths.csv', 'text/csv'], ['notes.md', 'text/markdown']]);

    const coming = page.waitForEvent('download');
    await dialog(page).getByRole('link', { name: 'berths.csv' }).click();
    const saved = await coming;
    assert.equal(saved.suggestedFilename(), 'berths.csv');
    assert.equal(await readFile(await saved.path(), 'utf8'), TABLE);

    // Nobody can tell of a sound what it weighs: whoever attaches it is asked.
    await choose(page, file('bell.ogg', 'audio/ogg', 'OggS and what follows'));
    await dialog(page).getByLabel('Size in tokens').fill('64');
    await dialog(page).getByRole('button', { name: 'Attach', exact: true }).click();
    await dialog(page).getByRole('link', { name: 'bell.ogg' }).waitFor();
    assert.equal((await filesOf(id)).at(-1).tokens, 64);
    await shot(page, 'files');
    assert.deepEqual(await faults(page), [], 'the files');

    await page.keyboard.press('Escape');
    const button = page.getByRole('button', { name: 'Files: 3 attached' });
    assert.ok(await button.evaluate((one) => one === document.activeElement), 'where the reader was before');
    await page.getByTestId('gauge').click();
    await page.getByRole('row', { name: /^files/ }).waitFor();
    await page.keyboard.press('Escape');
    await open(page, `?c=${id}&view=context`);
    await page.getByText('berth,length').waitFor();

    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: 'Files: 3 attached' }).click();
    for (const name of ['berths.csv', 'notes.md', 'bell.ogg']) {
      await dialog(page).getByRole('button', { name: `Remove ${name}` }).click();
      assert.equal((await filesOf(id)).some((one) => one.name === name), true, 'it is asked first');
      await dialog(page).getByRole('button', { name: 'Remove', exact: true }).click();
      await dialog(page).getByRole('link', { name }).waitFor({ state: 'detached' });
    }
    assert.deepEqual(await filesOf(id), []);
  });
});

test('what is not taken is told, and nothing of it is attached', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 4000 } });
  await withPage({ allows: REFUSALS }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: 'Attach files' }).click();
    for (const [refused, sentence] of [
      [file('large.txt', 'text/plain', 'a'.repeat(20_500_000)), /too large \(20\.5 MB\): up to 20 MB can be attached/],
      [file('plan.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'PK'), /of this type cannot be attached/],
      [file('plan.png', 'image/png', 'no picture'), /does not match the file’s name/],
      [file('data.bin', '', '\0\0\0'), /not text in UTF-8/],
      [file('empty.txt', 'text/plain', ''), /The file is empty\./],
      [file('long.txt', 'text/plain', 'Many words of a very long report. '.repeat(900)), /takes [\d,]+ tokens, and other files take 0/],
    ]) {
      await choose(page, refused);
      const alert = dialog(page).getByRole('alert');
      await alert.waitFor();
      const told = await alert.innerText();
      assert.ok(told.startsWith(refused.name), told);
      assert.match(told, sentence);
      await shot(page, `refused-${refused.name}`);
      assert.equal(await dialog(page).getByRole('button', { name: 'Try again' }).count(), refused.name === 'long.txt' ? 1 : 0);
      await dialog(page).getByRole('button', { name: 'Dismiss' }).click();
      await alert.waitFor({ state: 'detached' });
    }
    assert.deepEqual(await filesOf(id), []);
  });
});

test('what became of a file is told whoever looks at something else meanwhile', async () => {
  const { id } = await api('POST', '/conversations', {});
  await withPage({ allows: REFUSALS }, async (page) => {
    await open(page, `?c=${id}`);
    let go = () => {};
    const held = new Promise((resolve) => (go = resolve));
    const refusal = { status: 413, json: { code: 'body_too_large', limit: 1000 } };
    await page.route('**/files?*berths*', (route) => held.then(() => route.fulfill(refusal)));
    await page.getByRole('button', { name: 'Attach files' }).click();
    await choose(page, file('berths.csv', 'text/csv', 'berth,length'), file('quays.csv', 'text/csv', 'quay,length'));
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'State', exact: true }).click();
    await page.getByText(/There is no state yet/).waitFor();
    go();
    await page.waitForTimeout(1_000);
    await page.getByRole('button', { name: 'Chat', exact: true }).click();
    const refused = dialog(page).getByRole('alert').filter({ hasText: 'berths.csv' });
    await refused.waitFor();
    await dialog(page).getByTestId('files').getByText('quays.csv').waitFor();
    await refused.getByRole('button', { name: 'Dismiss' }).click();
    await refused.waitFor({ state: 'detached' });
    assert.equal((await filesOf(id)).length, 1);
  });
});

test('a hundred files are taken, and no more: in Russian, on a phone, in the dark', async () => {
  const { id } = await api('POST', '/conversations', { locale: 'ru', policy: { context_window: 100_000 } });
  await withPage({ language: 'ru', phone: true, dark: true, allows: REFUSALS }, async (page) => {
    await open(page, `?c=${id}`);
    await page.getByRole('button', { name: 'Приложить файлы' }).click();
    await choose(page, ...Array.from({ length: 101 }, (_, number) => file(`причал-${number}.txt`, 'text/plain', `${number}`)));
    const alert = dialog(page).getByRole('alert');
    await alert.waitFor({ timeout: 180_000 });
    assert.match(await alert.innerText(), /Файлов в беседе уже 100/);
    assert.deepEqual((await filesOf(id)).map((one) => one.name).slice(0, 2), ['причал-0.txt', 'причал-1.txt'], 'in the order of choosing');
    await shot(page, 'files-phone-dark-ru');
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)) <= 0);
    assert.deepEqual(await faults(page), []);
  });
});

test('a conversation may begin with its files; its first words name it', async () => {
  await withPage({}, async (page) => {
    await open(page);
    await page.getByRole('button', { name: 'Attach files' }).click();
    await choose(page, file('berths.csv', 'text/csv', TABLE));
    await dialog(page).getByRole('link', { name: 'berths.csv' }).waitFor();
    await page.keyboard.press('Escape');
    await send(page, 'How long is berth 5?');
    await page.locator('[data-seq="2"]').waitFor();
    await settled(page);
    const { title } = await api('GET', `/conversations/${conversationOf(page)}`);
    assert.equal(title, 'How long is berth 5?');
    await page.getByRole('button', { name: 'Stats' }).click();
    await page.getByRole('button', { name: 'Chat', exact: true }).click();
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal(await dialog(page).count(), 0, 'the files open once');
  });
});
