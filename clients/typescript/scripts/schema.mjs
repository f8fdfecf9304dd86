// Writes src/schema.d.ts from openapi.json: npm run schema [-- path of another file].
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../../openapi.json", import.meta.url);
const target = process.argv[2] ?? new URL("../src/schema.d.ts", import.meta.url);
const digest = createHash("sha256")
  .update(await readFile(document))
  .digest("hex");
// A field with a default may be left out of a request: it is not required.
const types = await openapiTS(document, { defaultNonNullable: false });
const head = `// Made of openapi.json by \`npm run schema\`: not to be changed by hand.\n// sha256 of openapi.json: ${digest}\n\n`;
await writeFile(target, head + astToString(types));
