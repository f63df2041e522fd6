import { expect, test } from "@jest/globals";
import { Semaphore } from "./semaphore.ts";

test("grants its permits at once and later ones in the order of requests", async () => {
  const semaphore = new Semaphore(2);
  const granted: number[] = [];
  const requests = [1, 2, 3, 4].map((n) => semaphore.acquire(60_000).then((isGranted) => isGranted && granted.push(n)));
  await Promise.all(requests.slice(0, 2));
  expect(granted).toEqual([1, 2]);
  semaphore.release();
  await requests[2];
  semaphore.release();
  await requests[3];
  expect(granted).toEqual([1, 2, 3, 4]);
});

test("a request that times out gets no permit and takes none from others", async () => {
  const semaphore = new Semaphore(1);
  expect(await semaphore.acquire(60_000)).toBe(true);
  expect(await semaphore.acquire(1)).toBe(false);
  const next = semaphore.acquire(60_000);
  semaphore.release();
  expect(await next).toBe(true);
  semaphore.release();
  expect(await semaphore.acquire(60_000)).toBe(true);
});
