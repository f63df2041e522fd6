import { expect, test } from "@jest/globals";
import { systemTimers } from "./timers.ts";

test("a timer of a month does not fire at once", async () => {
  const fired: string[] = [];
  const cancel = systemTimers.after(30 * 86_400_000, () => fired.push("month"));
  await new Promise<void>((resolve) => systemTimers.after(5, resolve));
  cancel();
  expect(fired).toEqual([]);
});
