import { expect, test } from "@jest/globals";
import { LiveText, type Said } from "../src/executions/live-text.ts";
import { Masker } from "../src/spool/masker.ts";
import { manualTime } from "./manual-time.ts";

const SECRET = "hunter2-hunter2";
const turn = () => new Promise((resolve) => setImmediate(resolve));

function aVoice(answers: readonly Promise<void>[] = []) {
  const time = manualTime();
  const said: Said[] = [];
  const masker = new Masker([SECRET, "other"]);
  masker.addToken(`mwr_${"t".repeat(600)}`);
  const live = new LiveText({
    timers: time.timers,
    masker: () => masker.stream(),
    send: (one) => (said.push(one), answers[said.length - 1] ?? Promise.resolve()),
  });
  const pass = async () => {
    time.advance(250);
    await turn();
  };
  return { live, said, pass };
}

test("what a model says is gathered for a quarter of a second, and its pieces follow each other", async () => {
  const { live, said, pass } = aVoice();
  for (const word of ["Now ", "I ", "look."]) live.say("s1", word);
  expect(said).toEqual([]);
  await pass();
  live.say("s1", " Then 漢字.");
  await pass();
  live.say("s2", "Next.");
  await pass();
  await pass();
  expect(said).toEqual([
    { stepId: "s1", offset: 0, text: "Now I look." },
    { stepId: "s1", offset: 11, text: " Then 漢字." },
    { stepId: "s2", offset: 0, text: "Next." },
  ]);
});

test("no part of a secret is told, in however many pieces it comes", async () => {
  const { live, said, pass } = aVoice();
  for (const character of `It is ${SECRET}, not hunter3.`) {
    live.say("s", character);
    await pass();
  }
  const text = said.map((one) => one.text).join("");
  expect(text).toBe("It is ***, not hunter3.");
  live.say("s", "Begun: hunter2");
  await pass();
  expect(said.at(-1)!.text).toBe("Begun: ");
});

test("one piece is under way at a time; a long text goes in several, whole characters each; after the end nothing is told", async () => {
  const first = Promise.withResolvers<void>();
  const { live, said, pass } = aVoice([first.promise]);
  live.say("s", `${"a".repeat(16 * 1024 - 1)}😀b`);
  await pass();
  live.say("s", "c");
  await pass();
  expect(said.map(({ text }) => text.length)).toEqual([16 * 1024 - 1]);
  first.resolve();
  await turn();
  await pass();
  expect(said.slice(1)).toEqual([{ stepId: "s", offset: 16 * 1024 - 1, text: "😀bc" }]);
  live.say("s", "d");
  live.end();
  await pass();
  expect(said).toHaveLength(2);
});
