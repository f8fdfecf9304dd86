// Does the steps of a scenario and prints what came of each, as JSON: node scenario.mjs <url> <file> <known values>.
// The same steps are done by the Python client (tests/acceptance/test_clients.py), and judged there.

import { readFile } from "node:fs/promises";
import { ApiError, ContextCompressor, Throughline, ThroughlineError } from "../dist/index.js";

const [url, file, known] = process.argv.slice(2);
const client = new Throughline(url, { retrying: { firstPause: 10 } });
const values = JSON.parse(known);
const outcomes = [];

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
/** Options are ours and have the language's names; what else filters a list has the contract's. */
const OURS = new Set(["idempotency_key", "if_match", "page_size"]);
const optionsOf = (options = {}) =>
  Object.fromEntries(Object.entries(options).map(([name, value]) => [OURS.has(name) ? camel(name) : name, value]));

/** Bodies that are no object of the contract here. */
const BODIES = {
  append_many: (body) => body.messages,
  restore: (body) => body.state_version,
};

function filled(value) {
  if (typeof value === "string" && value.startsWith("$") && value.slice(1) in values) return values[value.slice(1)];
  if (typeof value === "string") return value.replaceAll("$client", values.client);
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v)]));
  return value;
}

async function done({ call, engine, of = [], args = [], body, options, take = Infinity }) {
  if (engine) return new ContextCompressor(client, of[0])[camel(engine)](...args);
  const given = body === undefined ? [] : [BODIES[call]?.(body) ?? body];
  const made = client[camel(call)](...of, ...given, ...(options ? [optionsOf(options)] : []));
  if (!(Symbol.asyncIterator in made)) return (await made) ?? null;
  const items = [];
  for await (const item of made) if (items.push(item) >= take) break;
  return items;
}

function told(error) {
  if (!(error instanceof ThroughlineError)) throw error;
  if (!(error instanceof ApiError)) return { class: error.name };
  const { name, status, code, retryable } = error;
  return { class: name, status, code, retryable, fields: error.errors.map((one) => one.field) };
}

function found(value, path) {
  const steps = path === "" ? [] : path.split(".");
  return steps.reduce((at, step) => (step === "count" ? at.length : step === "last" ? at.at(-1) : at[step]), value);
}

for (const step of JSON.parse(await readFile(file, "utf8"))) {
  const { fault, save = {}, ...asked } = step;
  if (fault) await fetch(`${url}/fault`, { method: "POST", body: JSON.stringify(fault) });
  try {
    const value = await done(filled({ ...asked, expect: undefined, fails: undefined }));
    for (const [name, path] of Object.entries(save)) values[name] = found(value, path);
    outcomes.push({ value });
  } catch (error) {
    outcomes.push({ error: told(error) });
    if (!step.fails) break;
  }
}
/** Bytes are told as numbers. */
const plain = (_, value) => (value instanceof Uint8Array ? [...value] : value);
console.log(JSON.stringify({ outcomes, values }, plain));
