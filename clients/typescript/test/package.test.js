import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

test("the archive has all that an import of the package needs, and it builds itself", async () => {
  const { prepack } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf-8")).scripts;
  assert.match(prepack, /run (--silent )?build$/);
  const folder = mkdtempSync(join(PACKAGE, "node_modules", ".packed-")); // its dependencies are found from there
  try {
    const run = (command, ...given) => execFileSync(command, given, { cwd: PACKAGE, encoding: "utf-8", stdio: "pipe" });
    // Built is already what other tests use meanwhile.
    const pack = ["pack", "--json", "--silent", "--ignore-scripts", "--pack-destination", folder];
    const [{ filename, files }] = JSON.parse(run("npm", ...pack));
    const names = files.map((one) => one.path);
    for (const name of ["dist/index.js", "dist/index.d.ts", "dist/schema.d.ts", "LICENSE", "README.md"])
      assert.ok(names.includes(name), `${name} is not in it: ${names}`);
    assert.ok(!names.some((name) => name.startsWith("src/") || name.startsWith("test/")), `${names}`);
    run("tar", "-xzf", join(folder, filename), "-C", folder);
    const { Throughline } = await import(pathToFileURL(join(folder, "package", "dist", "index.js")));
    assert.equal(typeof new Throughline("http://t").chat, "function");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
