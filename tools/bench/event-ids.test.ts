import { expect, test } from "@jest/globals";
import { EventIds } from "./event-ids.ts";

const event = (id: number): string => `id: ${id}\nevent: model_step\ndata: {"seq":${id},"text":"id: 9"}\n\n`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const RESPONSE = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${[": open\n\n", event(1), event(2) + event(3)].map(chunk).join("")}`;

test("counts the events of a chunked response in any fragmentation", () => {
  for (let size = 1; size <= RESPONSE.length; size++) {
    const ids = new EventIds();
    let count = 0;
    for (let at = 0; at < RESPONSE.length; at += size) count += ids.take(RESPONSE.slice(at, at + size));
    expect([count, ids.last, ids.isEnded]).toEqual([3, 3, false]);
  }
});

test.each([
  ["a missing", 4, "Event 4 follows event 2."],
  ["a repeated", 2, "Event 2 follows event 2."],
])("rejects %s event", (_what, id, message) => {
  const ids = new EventIds();
  ids.take(event(1) + event(2));
  expect(() => ids.take(event(id))).toThrow(message);
});

test("rejects an event after the end", () => {
  const ids = new EventIds();
  ids.take(`${event(1)}event: end\ndata: {}\n\n`);
  expect(ids.isEnded).toBe(true);
  expect(() => ids.take(event(2))).toThrow("Event 2 follows event 1.");
});
