/** The pictures of the docs: started by `bench/pictures.py`, which plays the conversation that they show. */
import { join } from 'node:path';
import { open, withPage } from '../tests/browser.mjs';

const ID = process.env.CONVERSATION;
const FOLDER = process.env.PICTURES;
const FOLDS = 2;
const CHAT = 1182;
const CONTEXT = 880;

async function take(page, name) {
  // The caret blinks, and the pointer lights up what is under it.
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(0, 0);
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
}

await withPage({}, async (page) => {
  await page.setViewportSize({ width: 1280, height: CHAT });
  await open(page, `?c=${ID}`);
  const fold = page.getByTestId('compaction').nth(FOLDS - 1);
  await fold.getByRole('button').first().click();
  await fold.getByTestId('compaction-state').locator('dl').waitFor();
  await page.getByTestId('sources').last().waitFor();
  await page.getByTestId('gauge').waitFor();
  // At the end of the talk, with all of the opened state in sight.
  const thread = page.getByTestId('thread');
  await thread.evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await page.getByRole('button', { name: 'Latest' }).waitFor({ state: 'detached' });
  const hidden = (await thread.boundingBox()).y - (await fold.boundingBox()).y;
  if (hidden > 0) throw new Error(`the opened state is ${Math.ceil(hidden)} pixels too high for the picture`);
  await take(page, 'web');
});

await withPage({ dark: true }, async (page) => {
  await page.setViewportSize({ width: 1280, height: CONTEXT });
  await open(page, `?c=${ID}&view=context`);
  await page.locator('main table').waitFor();
  await take(page, 'web-context');
});
