import { expect, test } from "@jest/globals";
import { Gathering, type GatheringOptions } from "./gathering.ts";

/** A gathering whose batches end when told. */
function held(options: GatheringOptions = {}) {
  const batches: { keys: readonly number[]; end: (error?: Error) => void }[] = [];
  const gathering = new Gathering<number, string>(
    (keys) =>
      new Promise((resolve, reject) => {
        batches.push({ keys, end: (error) => (error ? reject(error) : resolve(keys.map((key) => `answer ${key}`))) });
      }),
    undefined,
    options,
  );
  return { gathering, batches };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("what is asked while others are under way goes in one batch, and each gets its own answer", async () => {
  const { gathering, batches } = held();
  const answers = [1, 2, 3, 4, 5].map((n) => gathering.ask(n));
  expect(batches.map(({ keys }) => keys)).toEqual([[1]]);
  batches[0]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1], [2, 3, 4, 5]]);
  batches[1]!.end();
  expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5].map((n) => `answer ${n}`));
});

test("two batches may be under way at once, and a third waits for one of them", async () => {
  const { gathering, batches } = held({ atOnce: 2 });
  const answers = [1, 2, 3, 4].map((n) => gathering.ask(n));
  expect(batches.map(({ keys }) => keys)).toEqual([[1], [2]]);
  batches[1]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1], [2], [3, 4]]);
  batches[2]!.end();
  batches[0]!.end();
  expect(await Promise.all(answers)).toEqual([1, 2, 3, 4].map((n) => `answer ${n}`));
});

test("a batch goes beside another when it is as large, or when that one ends", async () => {
  const { gathering, batches } = held({ atOnce: 2, isPatient: true });
  const answers = [1, 2, 3].map((n) => gathering.ask(n));
  await turn();
  answers.push(...[4, 5].map((n) => gathering.ask(n)));
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3]]);
  answers.push(gathering.ask(6));
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  answers.push(gathering.ask(7));
  await turn();
  batches[0]!.end();
  await turn();
  expect(batches).toHaveLength(2);
  batches[1]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3], [4, 5, 6], [7]]);
  batches[2]!.end();
  expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `answer ${n}`));
});

test("a patient one takes all that is asked in a turn as one batch, and what is asked later as the next", async () => {
  const { gathering, batches } = held({ isPatient: true });
  const answers = [1, 2, 3].map((n) => gathering.ask(n));
  expect(batches).toEqual([]);
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3]]);
  answers.push(gathering.ask(4));
  batches[0]!.end();
  await turn();
  expect(batches.map(({ keys }) => keys)).toEqual([[1, 2, 3], [4]]);
  batches[1]!.end();
  expect(await Promise.all(answers)).toEqual([1, 2, 3, 4].map((n) => `answer ${n}`));
});

test("nobody fails by what others asked", async () => {
  const gathering = new Gathering<number, number>(async (keys) => {
    await turn();
    if (keys.includes(4)) throw new Error("four");
    return keys.map((key) => key * 10);
  });
  const settled = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => gathering.ask(n)));
  expect(settled.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Error).message))).toEqual([
    10,
    20,
    30,
    "four",
    50,
  ]);
});

test("what may have been done is not done again", async () => {
  let times = 0;
  const gathering = new Gathering<number, number>(
    async () => {
      times += 1;
      await turn();
      throw new Error("who knows");
    },
    () => false,
  );
  const settled = await Promise.allSettled([1, 2, 3].map((n) => gathering.ask(n)));
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(times).toBe(2);
});

test("a batch that never got as far as a promise fails like any other", async () => {
  const gathering = new Gathering<number, number>(() => {
    throw new Error("at once");
  });
  await expect(gathering.ask(1)).rejects.toThrow("at once");
  await expect(gathering.ask(2)).rejects.toThrow("at once");
});
