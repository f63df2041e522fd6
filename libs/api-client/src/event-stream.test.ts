import { expect, test } from "@jest/globals";
import { parseEventStream } from "./event-stream.ts";

async function* chunks(...parts: string[]) {
  for (const part of parts) yield new TextEncoder().encode(part);
}

async function read(...parts: string[]) {
  const events = [];
  for await (const event of parseEventStream(chunks(...parts))) events.push(event);
  return events;
}

test("reassembles an event that is split over chunks", async () => {
  expect(await read("id: 7\nevent: mess", 'age\ndata: {"a":1}\n', "\n")).toEqual([
    { id: "7", event: "message", data: '{"a":1}' },
  ]);
});

test("ignores comments and blocks without data", async () => {
  expect(await read(": keep-alive\n\n", "event: x\n\n", "data: y\n\n")).toEqual([{ event: "message", data: "y" }]);
});

test("joins several data lines into one text", async () => {
  expect(await read("data: a\ndata: b\n\n")).toEqual([{ event: "message", data: "a\nb" }]);
});

test("reassembles a multi-byte character that is split between chunks", async () => {
  const bytes = new TextEncoder().encode("data: é\n\n");
  async function* halves() {
    yield bytes.slice(0, 7);
    yield bytes.slice(7);
  }
  const events = [];
  for await (const event of parseEventStream(halves())) events.push(event);
  expect(events).toEqual([{ event: "message", data: "é" }]);
});
