// What docs/typescript.md shows is valid against the types of the built package.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const folder = fileURLToPath(new URL(".", import.meta.url));
const options = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ["node"],
  rootDir: fileURLToPath(new URL("..", import.meta.url)),
  strict: true,
  skipLibCheck: true,
  noEmit: true,
};

/** The compiler's complaints about modules that exist in memory alone, each after the place of its module. */
function complaints(texts) {
  const files = new Map(texts.map((text, place) => [`${folder}page${place}.ts`, text]));
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path) ?? readFile(path);
  host.getSourceFile = (path, target) => {
    const text = host.readFile(path);
    return text === undefined ? undefined : ts.createSourceFile(path, text, target);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  return ts
    .getPreEmitDiagnostics(program)
    .map((one) => `${one.file?.fileName.at(-4)}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`);
}

test("the page's blocks are valid, one after the other, and a name that is gone is seen", () => {
  const page = readFileSync(new URL("../../../docs/typescript.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map(([, text]) => text);
  assert.ok(blocks.length >= 5);
  const own = blocks.findIndex((text) => text.includes("process.env"));
  const alone = `import { Throughline } from "@throughline/client";\n${blocks[own]}`;
  const together = blocks.filter((_, place) => place !== own).join("\n");
  const control = together.replace("throughline.chatStream", "throughline.chatStreamed");
  const found = complaints([together, alone, control]);
  assert.deepEqual(found.filter((one) => !one.startsWith("2: ")), []);
  assert.match(found.join("\n"), /chatStreamed/);
});
