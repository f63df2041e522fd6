import { expect, test } from "@jest/globals";
import { LiveText, type TextDelta } from "../src/executions/live-text.ts";
import { Masker } from "../src/spool/masker.ts";
import { manualTime } from "./manual-time.ts";

const SECRET = "hunter2-hunter2";
const turn = () => new Promise((resolve) => setImmediate(resolve));

function aLiveText(responses: readonly Promise<void>[] = []) {
  const time = manualTime();
  const sent: TextDelta[] = [];
  const masker = new Masker([SECRET, "other"]);
  masker.addToken(`mwr_${"t".repeat(600)}`);
  const live = new LiveText({
    timers: time.timers,
    masker: () => masker.stream(),
    send: (delta) => (sent.push(delta), responses[sent.length - 1] ?? Promise.resolve()),
  });
  const pass = async () => {
    time.advance(250);
    await turn();
  };
  return { live, sent, pass };
}

test("text of a model is batched for a quarter of a second, in order", async () => {
  const { live, sent, pass } = aLiveText();
  for (const word of ["Now ", "I ", "look."]) live.publish("s1", word);
  expect(sent).toEqual([]);
  await pass();
  live.publish("s1", " Then 漢字.");
  await pass();
  live.publish("s2", "Next.");
  await pass();
  await pass();
  expect(sent).toEqual([
    { stepId: "s1", offset: 0, text: "Now I look." },
    { stepId: "s1", offset: 11, text: " Then 漢字." },
    { stepId: "s2", offset: 0, text: "Next." },
  ]);
});

test("no part of a secret is published, in however many pieces it arrives", async () => {
  const { live, sent, pass } = aLiveText();
  for (const character of `It is ${SECRET}, not hunter3.`) {
    live.publish("s", character);
    await pass();
  }
  const text = sent.map((delta) => delta.text).join("");
  expect(text).toBe("It is ***, not hunter3.");
  live.publish("s", "Begun: hunter2");
  await pass();
  expect(sent.at(-1)!.text).toBe("Begun: ");
});

test("one piece is sent at a time; a long text is sent in several, of whole characters; after the end nothing is sent", async () => {
  const first = Promise.withResolvers<void>();
  const { live, sent, pass } = aLiveText([first.promise]);
  live.publish("s", `${"a".repeat(16 * 1024 - 1)}😀b`);
  await pass();
  live.publish("s", "c");
  await pass();
  expect(sent.map(({ text }) => text.length)).toEqual([16 * 1024 - 1]);
  first.resolve();
  await turn();
  await pass();
  expect(sent.slice(1)).toEqual([{ stepId: "s", offset: 16 * 1024 - 1, text: "😀bc" }]);
  live.publish("s", "d");
  live.end();
  await pass();
  expect(sent).toHaveLength(2);
});
