import { expect, test } from "@jest/globals";
import { BackgroundLoop } from "./background-loop.ts";

/** Runs a loop until `step` has run `times` times. */
async function run(
  times: number,
  everyMs: number,
  step: (n: number, loop: BackgroundLoop) => "again" | "idle" | Promise<"again" | "idle">,
) {
  const errors: unknown[] = [];
  let n = 0;
  await new Promise<void>((resolve) => {
    const loop = new BackgroundLoop({
      everyMs,
      onError: (error) => errors.push(error),
      step: async () => {
        n += 1;
        if (n === times) resolve(loop.stop());
        return step(n, loop);
      },
    });
    loop.start();
  }).catch((error: unknown) => errors.push(error));
  return { n, errors };
}

const NEVER_MS = 3_600_000;

test("a loop with more to do does not sleep", async () => {
  expect((await run(5, NEVER_MS, () => "again")).n).toBe(5);
});

test("an idle loop wakes after its pause", async () => {
  expect((await run(3, 1, () => "idle")).n).toBe(3);
});

test("a wake-up during a step causes another one", async () => {
  const { n } = await run(3, NEVER_MS, (_, loop) => {
    loop.wake();
    return "idle";
  });
  expect(n).toBe(3);
});

test("a wake-up ends the pause of a sleeping loop", async () => {
  const { n } = await run(3, NEVER_MS, (_, loop) => {
    setTimeout(() => loop.wake(), 5);
    return "idle";
  });
  expect(n).toBe(3);
});

test("a failing step is reported and retried without a wake-up", async () => {
  const { n, errors } = await run(3, NEVER_MS, (i) => {
    if (i < 3) throw new Error(`step ${i}`);
    return "idle";
  });
  expect([n, errors.map(String)]).toEqual([3, ["Error: step 1", "Error: step 2"]]);
});

test("stop waits for the running step and starts no further one", async () => {
  let [begun, ended] = [0, 0];
  const loop = new BackgroundLoop({
    everyMs: 1,
    onError: () => {},
    step: async () => {
      begun += 1;
      await new Promise((resolve) => setTimeout(resolve, 10));
      ended += 1;
      return "again";
    },
  });
  loop.start();
  await new Promise((resolve) => setImmediate(resolve));
  await loop.stop();
  const after = begun;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([begun, ended]).toEqual([after, after]);
});
