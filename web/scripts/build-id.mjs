/** The id of a build, from the content of everything it is made of: the same sources give the same id. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const FILES = ['package.json', 'package-lock.json', 'next.config.mjs', 'postcss.config.mjs', 'tsconfig.json'];
const FOLDERS = ['src'];

function* filesBelow(folder) {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) yield* filesBelow(path);
    else if (!path.endsWith('schema.d.ts')) yield path;
  }
}

/** Sixteen hexadecimal digits. */
export function buildId() {
  const hash = createHash('sha256');
  const folders = FOLDERS.flatMap((name) => [...filesBelow(join(ROOT, name))]);
  for (const path of [...FILES.map((name) => join(ROOT, name)), ...folders]) {
    hash.update(relative(ROOT, path)).update('\0').update(readFileSync(path)).update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}
