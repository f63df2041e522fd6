import { expect, test } from "@jest/globals";
import { HeadTail } from "./head-tail.ts";

test.each([
  ["", 10, { text: "", truncated: false }],
  ["0123456789", 10, { text: "0123456789", truncated: false }],
  ["0123456789x", 10, { text: "01234\n… 1 bytes omitted …\n6789x", truncated: true }],
  ["0123456789".repeat(20), 10, { text: "01234\n… 190 bytes omitted …\n56789", truncated: true }],
])("of %j the first and last of %d bytes are retained, in pieces of any size", (text, bytesMax, expected) => {
  for (const size of [1, 3, 1_000]) {
    const output = new HeadTail(bytesMax);
    for (let start = 0; start < text.length; start += size) output.push(Buffer.from(text.slice(start, start + size)));
    expect(output.text()).toEqual(expected);
  }
});
