/** The policy's form: what is chosen is stored, what cannot be is told, and what else was set stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, faults, open, shot, withPage } from './browser.mjs';

test('thresholds follow the conversation within bounds, and thoughts are asked for', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 8000, anchor_share: 0.2 } });
  const policy = async () => (await api('GET', `/conversations/${id}`)).policy;
  await withPage({ allows: ['422'] }, async (page) => {
    await open(page, `?c=${id}&view=settings`);
    await page.getByLabel('Thoughts of the model').selectOption('asked');
    await page.getByLabel('Thresholds').selectOption('on');
    await page.getByLabel('Background, at the latest').fill('60');
    const form = page.locator('form').filter({ has: page.getByLabel('Thresholds') });
    await form.getByRole('button', { name: 'Save' }).click();
    await form.getByRole('alert').getByText(/is below background_at/).waitFor();
    assert.equal((await policy()).adaptive, 'off', 'nothing is half stored');

    await page.getByLabel('Background, at the latest').fill('78');
    await page.getByLabel('Folded down to, at the least').fill('45.5');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    const { adaptive, adaptive_bounds, reasoning, anchor_share } = await policy();
    assert.deepEqual([adaptive, reasoning, anchor_share], ['on', 'asked', 0.2]);
    assert.deepEqual(adaptive_bounds, { background_min: null, background_max: 0.78, target_min: 0.455, target_max: null });
    await page.getByText(/^Too few turns yet to follow/).waitFor();
    await shot(page, 'settings-adaptive');
    assert.deepEqual(await faults(page), []);

    // What somebody writes here is not lost when a message comes.
    await page.getByLabel('System prompt').fill('Answer in one sentence.');
    await api('POST', `/conversations/${id}/chat`, { content: 'Hello.' });
    await page.waitForTimeout(1500);
    assert.equal(await page.getByLabel('System prompt').inputValue(), 'Answer in one sentence.');

    await page.getByLabel('Thresholds').selectOption('off');
    await page.getByLabel('Background, % of the budget').fill('65');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await page.waitForTimeout(500);
    const later = await policy();
    assert.deepEqual([later.adaptive, later.triggers[0].at.share], ['off', 0.65]);
  });
});

test('a threshold whose field is emptied is gone, and what the page calls saved is stored', async () => {
  const { id } = await api('POST', '/conversations', { policy: { context_window: 8000, background_at: 0.65 } });
  const shares = async () => (await api('GET', `/conversations/${id}`)).policy.triggers.map(({ name, at }) => [name, at.share]);
  await withPage({}, async (page) => {
    await open(page, `?c=${id}&view=settings`);
    const form = page.locator('form').filter({ has: page.getByLabel('Further fields') });
    await form.getByLabel('Background, % of the budget').fill('');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    assert.deepEqual(await shares(), [['sync', 0.85]]);
    await page.getByLabel('Before a reply, % of the budget').fill('90');
    const saved = page.waitForResponse((response) => response.request().method() === 'PATCH');
    await form.getByRole('button', { name: 'Save' }).click();
    await saved;
    assert.deepEqual(await shares(), [['sync', 0.9]]);
  });
});

test('what is written in the settings stays until it is saved, over another view and a login', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Harbour '.repeat(37) });
  await withPage({ allows: ['401', '404'] }, async (page) => {
    await open(page, `?c=${id}&view=settings`);
    const prompt = page.getByLabel('System prompt');
    const tab = (name) => page.getByRole('button', { name, exact: true }).click();
    await prompt.fill('Speak of the harbour alone.');
    await page.getByText('Not saved yet.').waitFor();
    await page.getByLabel('Language of the conversation').selectOption('ru');
    await prompt.fill('');
    await page.getByText('Not saved yet.').waitFor();
    await prompt.fill('Speak of the harbour alone.');
    const window = page.getByRole('spinbutton', { name: 'Context window in tokens' });
    await window.fill('9000');
    await page.getByLabel('Notifications', { exact: true }).selectOption('events');
    await page.getByLabel('Further fields').fill('{"anchor_share": 0.2}');
    await tab('Chat');
    await page.getByTestId('gauge').waitFor();
    await tab('Settings');
    assert.equal(await prompt.inputValue(), 'Speak of the harbour alone.');
    assert.equal(await page.getByLabel('Language of the conversation').inputValue(), 'ru');
    // Another tab changes the policy meanwhile.
    await api('PATCH', `/conversations/${id}`, { policy: { recall: 'off' } });
    await api('POST', `/conversations/${id}/messages`, { role: 'user', content: 'Hello.' });
    await page.waitForFunction(() => [...document.querySelectorAll('select')].some((one) => one.value === 'off' && one.options[0].value === 'auto'));
    assert.deepEqual(
      await Promise.all([window.inputValue(), page.getByLabel('Notifications', { exact: true }).inputValue(), page.getByLabel('Further fields').inputValue()]),
      ['9000', 'events', '{"anchor_share": 0.2}'],
    );
    await page.getByRole('button', { name: 'Save' }).nth(1).click();
    await page.getByText('Saved.').waitFor();
    const { policy } = await api('GET', `/conversations/${id}`);
    assert.deepEqual([policy.context_window, policy.notifications, policy.anchor_share, policy.recall], [9000, 'events', 0.2, 'off']);
    assert.equal(await page.getByLabel('Further fields').inputValue(), '');

    await page.route(`**/conversations/${id}`, (route) =>
      route.request().method() === 'PATCH' ? route.fulfill({ status: 401, json: {} }) : route.continue(),
    );
    await page.route('**/ui/session', (route) => route.fulfill({ status: 204 }));
    const save = () => page.getByRole('button', { name: 'Save' }).first().click();
    await save();
    await page.getByLabel('API key').fill('tl_x');
    await page.getByRole('button', { name: 'Log in' }).click();
    assert.equal(await prompt.inputValue(), 'Speak of the harbour alone.');
    await page.unroute(`**/conversations/${id}`);
    await page.getByLabel('Title', { exact: true }).press('End');
    await page.keyboard.press('Backspace');
    await save();
    await page.getByText('Saved.').waitFor();
    await page.getByText('Not saved yet.').waitFor({ state: 'detached' });
    assert.equal((await api('GET', `/conversations/${id}`)).system_prompt, 'Speak of the harbour alone.');

    await prompt.fill('Speak of the lamps.');
    await api('DELETE', `/conversations/${id}`);
    await page.getByText('No such conversation.').waitFor();
    await page.locator('main').getByText('Speak of the lamps.').waitFor();
  });
});

test('a conversation begins under the preset that is the default of this service, unless another is chosen', async () => {
  await withPage({}, async (page) => {
    await page.route('**/presets', async (route) => {
      const answer = await route.fetch();
      const { data, ...page_ } = await answer.json();
      await route.fulfill({ json: { ...page_, data: data.map((one) => ({ ...one, is_default: one.name === 'sessions' })) } });
    });
    const asked = async (choose) => {
      await open(page);
      await page.getByText('Small window', { exact: true }).first().waitFor();
      assert.equal(await page.getByRole('radio').count(), 0, 'whoever only wants to talk is asked for nothing');
      await page.getByText('How older messages are kept').click();
      await page.getByRole('radio', { name: /sessions/, checked: true }).waitFor();
      if (choose) await page.getByRole('radio', { name: choose }).check();
      const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/conversations'));
      await page.getByRole('textbox', { name: 'Message' }).fill('Hello.');
      await page.keyboard.press('Enter');
      return (await sent).postDataJSON().preset;
    };
    assert.equal(await asked(), 'sessions');
    assert.equal(await asked(/research/), 'research');
  });
});

test('what a conversation set itself is told by its own version of the preset, and the same preset moves it on', async () => {
  const { id, preset, preset_version } = await api('POST', '/conversations', { policy: { context_window: 8000, target: 0.5 } });
  await withPage({}, async (page) => {
    await page.route('**/presets', async (route) => {
      const answer = await route.fetch();
      const { data, ...page_ } = await answer.json();
      const changed = ({ policy, ...one }) => ({
        ...one,
        version: preset_version + 1,
        policy: { ...policy, target: 0.5, state_tokens: 900 },
        earlier: [{ version: preset_version, policy }],
      });
      await route.fulfill({ json: { ...page_, data: data.map(changed) } });
    });
    await open(page, `?c=${id}&view=settings`);
    const own = page.locator('dt', { hasText: 'your own' });
    await own.first().waitFor();
    assert.deepEqual((await own.allInnerTexts()).map((text) => text.replace(/\s*your own$/, '')), ['context_window', 'target']);
    const form = page.locator('form').filter({ has: page.getByLabel('Further fields') });
    await form.getByLabel('Thoughts of the model').selectOption('asked');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    const { policy } = await api('GET', `/conversations/${id}`);
    assert.deepEqual([policy.reasoning, policy.target, policy.state_tokens], ['asked', 0.5, 800]);
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await page.getByRole('button', { name: 'Change preset' }).click();
    assert.deepEqual((await sent).postDataJSON(), { preset });
  });
});

test('only who logged in is offered the way out', async () => {
  await withPage({ allows: ['401', '503', 'ERR_FAILED'] }, async (page) => {
    const menu = async () => {
      await page.getByRole('button', { name: 'Language and theme' }).click();
      const items = await page.getByRole('menuitem').allInnerTexts();
      await page.keyboard.press('Escape');
      return items;
    };
    await open(page);
    assert.deepEqual(await menu(), [], 'no login is asked for here');

    // As where keys are asked for: refused until somebody entered one.
    let entered = false;
    let away = false;
    let ill = false;
    await page.route('**/conversations*', (route) => (entered ? route.continue() : route.fulfill({ status: 401, json: {} })));
    await page.route('**/ui/session', (route) => {
      if (away) return route.abort();
      if (ill) return route.fulfill({ status: 503, json: {} });
      entered = route.request().method() === 'POST';
      return route.fulfill({ status: 204 });
    });
    await page.reload();
    assert.deepEqual(await page.getByLabel('API key').fill('tl_x').then(menu), []);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('button', { name: 'New conversation' }).first().waitFor();
    assert.deepEqual(await menu(), ['Log out']);

    // Where nobody answers, the cookie stays, and so does the way out.
    const logOut = async () => {
      await page.getByRole('button', { name: 'Language and theme' }).click();
      await page.getByRole('menuitem', { name: 'Log out' }).click();
    };
    away = true;
    const draft = page.getByRole('textbox', { name: 'Message' });
    await draft.fill('Only for me.');
    await logOut();
    await page.getByRole('dialog').getByText('You are still logged in').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('dialog').getByText(/does not answer/).waitFor();
    await page.keyboard.press('Escape');
    assert.deepEqual(await menu(), ['Log out']);
    assert.equal(await draft.inputValue(), 'Only for me.');
    await logOut();
    await page.getByRole('dialog').getByText('You are still logged in').waitFor();
    away = false;
    await page.getByRole('dialog').getByRole('button', { name: 'Try again' }).click();
    await page.getByLabel('API key').waitFor();
    assert.deepEqual(await menu(), []);
    assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'nothing of it stays for the next user');

    // A service that cannot look a key up says nothing about the key.
    ill = true;
    await page.getByLabel('API key').fill('tl_x');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('The service cannot check this now.').waitFor();
  });
});

test('a title that was saved is not overtaken by what was read before', async () => {
  const { id } = await api('POST', '/conversations', { title: 'Old title' });
  await withPage({}, async (page) => {
    const held = [];
    let isHolding = false;
    await page.route(`**/conversations/${id}`, async (route) => {
      if (route.request().method() !== 'GET' || !isHolding) return route.continue();
      const response = await route.fetch();
      await new Promise((resolve) => held.push(resolve));
      return route.fulfill({ response }).catch(() => undefined);
    });
    await open(page, `?c=${id}&view=settings`);
    const title = page.getByRole('textbox', { name: 'Title', exact: true });
    await title.waitFor();
    isHolding = true;
    await api('POST', `/conversations/${id}/messages/batch`, { messages: [{ role: 'user', content: 'Hello.' }] });
    for (const patience = Date.now() + 10_000; held.length === 0 && Date.now() < patience; ) await page.waitForTimeout(50);
    isHolding = false;
    await title.fill('New title');
    await page.getByRole('button', { name: 'Save' }).first().click();
    await page.getByRole('heading', { name: 'New title' }).waitFor();
    await page.waitForTimeout(1_000);
    for (const go of held) go();
    await page.waitForTimeout(500);
    assert.equal(await title.inputValue(), 'New title');
    await page.getByRole('heading', { name: 'New title' }).waitFor();
  });
});
