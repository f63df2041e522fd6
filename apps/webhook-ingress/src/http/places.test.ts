import { expect, test } from "@jest/globals";
import { Places } from "./places.ts";

test("so many enter at once, the others in the order in which they came", async () => {
  const places = new Places(2);
  const entered: number[] = [];
  const all = [1, 2, 3, 4].map((n) => places.take(60_000).then((got) => got && entered.push(n)));
  await Promise.all(all.slice(0, 2));
  expect(entered).toEqual([1, 2]);
  places.give();
  await all[2];
  places.give();
  await all[3];
  expect(entered).toEqual([1, 2, 3, 4]);
});

test("who waits too long gets none, and takes none from others", async () => {
  const places = new Places(1);
  expect(await places.take(60_000)).toBe(true);
  expect(await places.take(1)).toBe(false);
  const next = places.take(60_000);
  places.give();
  expect(await next).toBe(true);
  places.give();
  expect(await places.take(60_000)).toBe(true);
});
