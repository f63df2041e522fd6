import { expect, test } from "@jest/globals";
import { Batcher, type BatcherOptions } from "./batcher.ts";

/** A batcher whose batches end when the test ends them. */
function pausedBatcher(options: BatcherOptions = {}) {
  const batches: { keys: readonly number[]; end: (error?: Error) => void }[] = [];
  const batcher = new Batcher<number, string>(
    (keys) =>
      new Promise((resolve, reject) => {
        batches.push({ keys, end: (error) => (error ? reject(error) : resolve(keys.map((key) => `result ${key}`))) });
      }),
    undefined,
    options,
  );
  return { batcher, batches };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("keys added while a batch runs form the next batch, and each gets its own result", async () => {
  const { batcher, batches } = pausedBatcher();
  const results = [1, 2, 3, 4, 5].map((n) => batcher.add(n));
  expect(batches.map(({ keys }) => keys)).toEqual([[1]]);
  batches[0]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1], [2, 3, 4, 5]]);
  batches[1]!.end();
  expect(await Promise.all(results)).toEqual([1, 2, 3, 4, 5].map((n) => `result ${n}`));
});

test("two batches may run concurrently, and a third waits for one of them", async () => {
  const { batcher, batches } = pausedBatcher({ concurrency: 2 });
  const results = [1, 2, 3, 4].map((n) => batcher.add(n));
  expect(batches.map(({ keys }) => keys)).toEqual([[1], [2]]);
  batches[1]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1], [2], [3, 4]]);
  batches[2]!.end();
  batches[0]!.end();
  expect(await Promise.all(results)).toEqual([1, 2, 3, 4].map((n) => `result ${n}`));
});

test("a batch starts beside another when it is as large, or when that one ends", async () => {
  const { batcher, batches } = pausedBatcher({ concurrency: 2, isPerTurn: true });
  const results = [1, 2, 3].map((n) => batcher.add(n));
  await turn();
  results.push(...[4, 5].map((n) => batcher.add(n)));
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3]]);
  results.push(batcher.add(6));
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  results.push(batcher.add(7));
  await turn();
  batches[0]!.end();
  await turn();
  expect(batches).toHaveLength(2);
  batches[1]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  batches[2]!.end();
  expect(await Promise.all(results)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `result ${n}`));
});

test("with isPerTurn, keys added in a turn form one batch, and later keys the next", async () => {
  const { batcher, batches } = pausedBatcher({ isPerTurn: true });
  const results = [1, 2, 3].map((n) => batcher.add(n));
  expect(batches).toEqual([]);
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3]]);
  results.push(batcher.add(4));
  batches[0]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3], [4]]);
  batches[1]!.end();
  expect(await Promise.all(results)).toEqual([1, 2, 3, 4].map((n) => `result ${n}`));
});

test("a failed batch is retried key by key, so that only the faulty key fails", async () => {
  const batcher = new Batcher<number, number>(async (keys) => {
    await turn();
    if (keys.includes(4)) throw new Error("four");
    return keys.map((key) => key * 10);
  });
  const settled = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => batcher.add(n)));
  expect(
    settled.map((result) => (result.status === "fulfilled" ? result.value : (result.reason as Error).message)),
  ).toEqual([10, 20, 30, "four", 50]);
});

test("a batch that may have taken effect is not retried", async () => {
  let times = 0;
  const batcher = new Batcher<number, number>(
    async () => {
      times += 1;
      await turn();
      throw new Error("connection lost");
    },
    () => false,
  );
  const settled = await Promise.allSettled([1, 2, 3].map((n) => batcher.add(n)));
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(times).toBe(2);
});

test("a synchronous throw rejects like a rejected promise", async () => {
  const batcher = new Batcher<number, number>(() => {
    throw new Error("at once");
  });
  await expect(batcher.add(1)).rejects.toThrow("at once");
  await expect(batcher.add(2)).rejects.toThrow("at once");
});
