/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { rm } from "node:fs/promises";
import { afterEach, expect, test } from "@jest/globals";
import { eventually, needs } from "@millwright/testing";
import { killDemos, startDemo } from "./support/demo-process.ts";

const LINK = /pull request {3}(\S+)/;
const CLOSED = "Links (they open while the platform runs: npm run demo -- --keep)";
const PRESS = "Press any key to stop it.";

afterEach(killDemos);

/** Returns whether the pull request of a link can be read: its diff, because the page itself is the console's. */
const opens = (link: string): Promise<boolean> =>
  fetch(link.replace("?", ".diff?")).then(
    ({ ok }) => ok,
    () => false,
  );

needs("script", "on a terminal the demo serves its links until a key is pressed", async () => {
  const { child, output, ended } = startDemo({ onTerminal: true });
  await eventually(() => output().includes(PRESS));
  const link = LINK.exec(output())![1]!;
  expect(await opens(link)).toBe(true);
  child.stdin.write("q");
  expect(await ended).toEqual([0, null]);
  expect(await opens(link)).toBe(false);
});

needs("script", "the demo exits by itself on a terminal with --exit", async () => {
  const { output, ended } = startDemo({ onTerminal: true }, "--exit");
  expect(await ended).toEqual([0, null]);
  expect(output()).toContain(CLOSED);
  expect(output()).not.toContain(PRESS);
});

test("the demo exits by itself without a terminal", async () => {
  const { output, ended } = startDemo({ onTerminal: false });
  expect(await ended).toEqual([0, null]);
  expect(output()).toContain(CLOSED);
});

test("the demo with --keep stays up without a terminal until a signal arrives", async () => {
  const { child, output, ended } = startDemo({ onTerminal: false }, "--keep");
  await eventually(() => output().includes("Ctrl-C stops it."));
  expect(await opens(LINK.exec(output())![1]!)).toBe(true);
  const [, signIn] = /^ +sign in +(\S+\/session\/link\/\S+) /m.exec(output())!;
  expect((await fetch(signIn!)).status).toBe(200);
  expect(output()).toMatch(/^ +the board +http:\S+\/work\?factory=[\da-f-]{36}$/m);
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  await rm(/Its data stays in (\S+)\.\n/.exec(output())![1]!, { recursive: true });
});
