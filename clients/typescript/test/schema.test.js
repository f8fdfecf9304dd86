import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

test("src/schema.d.ts is what openapi.json makes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "schema-"));
  try {
    const made = join(folder, "schema.d.ts");
    await promisify(execFile)("node", ["scripts/schema.mjs", made]);
    const there = await readFile("src/schema.d.ts", "utf8");
    assert.ok(there === (await readFile(made, "utf8")), "run `npm run schema` and commit src/schema.d.ts");
  } finally {
    await rm(folder, { recursive: true });
  }
});
