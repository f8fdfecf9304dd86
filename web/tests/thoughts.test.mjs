/** What a scripted model shows of its thoughts: in a part of their own as they come, folded, kept, and not where it is off. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, faults, open, send, settled, shot, withPage } from './browser.mjs';

const BEGINNING = 'They ask for the harbour of Zanzibar.';
const END = 'So I say seven.';
const THOUGHTS = `**Reading it**\n\n${BEGINNING} ${'I count the berths once more. '.repeat(12)}\n\n${END}`;

/** What the scripted server of the test answers next. */
async function script(behaviour) {
  const body = JSON.stringify({ kind: 'chat', behaviours: [behaviour] });
  const answer = await fetch(`${process.env.GEMINI_URL}/script`, { method: 'POST', body });
  assert.ok(answer.ok, await answer.text());
}
const thinking = (more = {}) => script({ name: 'text', text: 'There are **seven**.', thoughts: THOUGHTS, ...more });

async function opened(part) {
  assert.equal(await part.getAttribute('open'), null, 'folded until somebody opens it');
  assert.doesNotMatch(await part.innerText(), /Zanzibar/);
  await part.locator('summary').click();
  return part.getByRole('region', { name: 'Thoughts' });
}

test('thoughts are streamed into their part, stay folded afterwards, and are there after a reload', async () => {
  const { id } = await api('POST', '/conversations', { policy: { reasoning: 'asked' } });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await thinking({ pace: 1 });
    await send(page, 'How many berths does the harbour have?');
    const running = page.getByTestId('running-reply').getByTestId('thoughts');
    await running.getByText('Thinking…').waitFor();
    assert.equal(await page.getByTestId('running-reply').locator('.prose-reply').count(), 0, 'before the first word');
    await shot(page, 'thoughts-running');
    const told = await opened(running);
    await told.getByText(BEGINNING.slice(0, 8)).waitFor();
    const first = await told.innerText();
    assert.doesNotMatch(first, /So I say/, 'piece by piece');
    await told.getByText(END).waitFor();
    assert.ok((await told.innerText()).startsWith(first.slice(0, 40)));
    assert.ok(await told.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 30), 'the newest is in sight');
    assert.deepEqual(await faults(page), [], 'opened thoughts');

    const reply = page.locator('[data-seq="2"]');
    const kept = async () => {
      await reply.waitFor();
      await settled(page);
      assert.equal(await reply.getByTestId('thoughts').count(), 1);
      assert.match(await reply.innerText(), /Thoughts\s+There are seven\./);
      const part = await opened(reply.getByTestId('thoughts'));
      assert.match(await part.innerText(), new RegExp(`^Reading it\\s+${BEGINNING}[^]*${END}$`), 'set as text, without its marks');
    };
    await kept();
    await page.reload();
    await kept();
    await shot(page, 'thoughts-kept');
  });
});

test('control: under `reasoning: off` a model that thinks shows nothing of it', async () => {
  const { id } = await api('POST', '/conversations', { policy: { reasoning: 'off' } });
  // Such a turn asks the model for thoughts, whatever is shown of them.
  const turn = () => api('POST', `/conversations/${id}/chat`, { content: 'How many?', reasoning_effort: 'low' });
  await withPage({}, async (page) => {
    await open(page, `?c=${id}`);
    await thinking({ pace: 0.4 });
    const [answered] = await Promise.all([turn(), page.getByTestId('running-reply').waitFor()]);
    assert.equal(answered.reply.content, 'There are **seven**.');
    await page.locator('[data-seq="2"]').getByText('seven').waitFor();
    assert.equal(await page.getByTestId('thoughts').count(), 0);
    await page.reload();
    await page.locator('[data-seq="2"]').waitFor();
    assert.equal(await page.getByTestId('thoughts').count(), 0);

    await api('PATCH', `/conversations/${id}`, { policy: { reasoning: 'shown' } });
    await thinking();
    await turn();
    await page.locator('[data-seq="4"]').getByTestId('thoughts').waitFor();
    assert.equal(await page.getByTestId('thoughts').count(), 1, 'what was not shown then is not shown now');
  });
});

test('an error of the model is told in the language of the page, and the message can be asked again', async () => {
  const { id } = await api('POST', '/conversations', { locale: 'ru' });
  await withPage({ language: 'ru' }, async (page) => {
    await open(page, `?c=${id}`);
    await script('thoughts_only');
    await send(page, 'Сколько причалов?');
    const alert = page.getByTestId('thread').getByRole('alert');
    await alert.waitFor();
    assert.match(await alert.innerText(), /^Модель дала пустой ответ\. Сообщение сохранено/);
    await thinking();
    await page.getByRole('button', { name: 'Спросить ещё раз' }).click();
    await page.locator('[data-seq="2"]').getByText('seven').waitFor();
    await settled(page);
    assert.equal(await alert.count(), 0);
  });
});

test('a failure that lasts is told as one: nobody is sent to ask again for nothing', async () => {
  const { id } = await api('POST', '/conversations', {});
  await withPage({ allows: ['status of 5'] }, async (page) => {
    await open(page, `?c=${id}`);
    await script({ name: 'error_401' });
    await send(page, 'Hello?');
    await page.getByText(/Asking again will not help until the operator/).waitFor();
    await script({ name: 'error_500' });
    await send(page, 'Control: a failure that passes.');
    await page.getByText(/ask again in a moment/).waitFor();
  });
});
