import { expect, test } from "@jest/globals";
import { processBatched } from "./process-batched.ts";

/** Processes letters. Capitals have no key, and a batch that contains "bad" fails. */
async function batchesOf(items: readonly string[]) {
  const done: string[][] = [];
  await processBatched(
    items,
    (item) => (/[A-Z]/.test(item) ? undefined : item.split("=")[0]),
    async (batch) => {
      if (batch.includes("bad")) throw new Error("bad");
      done.push([...batch]);
    },
  ).catch(() => done.push(["failed"]));
  return done.map((batch) => batch.join(" ")).toSorted();
}

test.each([
  ["items with distinct keys are one batch", ["a", "b", "c"], ["a b c"]],
  ["items without a key are processed one by one", ["a", "B", "c", "D"], ["B", "D", "a c"]],
  ["of two items with the same key, the later one is in the batch", ["a=1", "b", "a=2"], ["a=1", "a=2 b"]],
  ["the items of a failed batch are retried one by one", ["a", "bad", "c"], ["a", "c", "failed"]],
  ["no items, no batches", [], []],
])("%s", async (_name, items, batches) => expect(await batchesOf(items)).toEqual(batches));
