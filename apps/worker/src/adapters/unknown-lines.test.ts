import { expect, test } from "@jest/globals";
import { omitUndefined } from "@millwright/json";
import type { Fields } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";
import { UnknownLines, unknownLinesIn } from "./unknown-lines.ts";

function lines(events: ConversationEvent[] = []) {
  const deps = {
    harness: "codex",
    mask: (text: string) => text.replaceAll("canary-secret", "***"),
    record: (kind: string, fields: Fields) => void events.push({ kind, payload: omitUndefined(fields) }),
  };
  return { events, unknown: new UnknownLines(events, deps) };
}

test("a line is stored unchanged, with secrets masked before it is truncated; an empty one is ignored", () => {
  const { events, unknown } = lines();
  const long = `${"x".repeat(15_995)}canary-secret and more`;
  for (const line of ['{"of": ["canary-secret"]}', " ", "no JSON", long]) unknown.add(line);
  expect(events).toEqual([
    { kind: "harness_line", payload: { harness: "codex", line: '{"of": ["***"]}' } },
    { kind: "harness_line", payload: { harness: "codex", line: "no JSON" } },
    { kind: "harness_line", payload: { harness: "codex", line: `${"x".repeat(15_995)}*** a`, truncated: true } },
  ]);
  expect(unknownLinesIn(events)).toEqual(['{"of": ["***"]}', "no JSON", expect.stringMatching(/\*\*\* a$/)]);
});

test("a run stores 200 of them over all its processes, and reports once that there are more", () => {
  const first = lines();
  for (let n = 0; n < 150; n += 1) first.unknown.add(`line ${n}`);
  const { events, unknown } = lines(first.events);
  for (let n = 150; n < 300; n += 1) unknown.add(`line ${n}`);
  expect(unknownLinesIn(events)).toEqual(Array.from({ length: 200 }, (_none, n) => `line ${n}`));
  expect(events.slice(200)).toEqual([
    { kind: "warning", payload: { text: expect.stringContaining("further ones are dropped") } },
  ]);
});

test("reports once that there are more, over any number of executions", () => {
  const events: ConversationEvent[] = [];
  for (const count of [200, 2, 2, 2]) {
    const { unknown } = lines(events);
    for (let n = 0; n < count; n += 1) unknown.add(`line ${n}`);
  }
  expect(events.slice(200)).toEqual([
    { kind: "warning", payload: { text: expect.stringContaining("further ones are dropped") } },
  ]);
});
