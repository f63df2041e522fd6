import { expect, test } from "@jest/globals";
import { markup } from "./markup.ts";

test("inserted text is escaped, inserted markup is not", () => {
  expect(
    markup`<p title="${'"><script>'}">${"a & b"}${markup`<b>${"<"}</b>`}${["x", undefined, false, markup`<i></i>`]}</p>`
      .text,
  ).toBe('<p title="&quot;&gt;&lt;script&gt;">a &amp; b<b>&lt;</b>x<i></i></p>');
});
