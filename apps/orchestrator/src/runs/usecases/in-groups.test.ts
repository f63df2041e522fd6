import { expect, test } from "@jest/globals";
import { inGroups } from "./in-groups.ts";

/** Processes letters. Capitals are processed one by one, and a group that contains "bad" fails. */
async function groupsOf(items: readonly string[]) {
  const done: string[][] = [];
  await inGroups(
    items,
    (item) => (/[A-Z]/.test(item) ? undefined : item.split("=")[0]),
    async (group) => {
      if (group.includes("bad")) throw new Error("bad");
      done.push([...group]);
    },
  ).catch(() => done.push(["failed"]));
  return done.map((group) => group.join(" ")).toSorted();
}

test.each([
  ["those with a run of their own go together", ["a", "b", "c"], ["a b c"]],
  ["those without one go by themselves", ["a", "B", "c", "D"], ["B", "D", "a c"]],
  ["of two of the same run only one goes with the others", ["a=1", "b", "a=2"], ["a=1", "a=2 b"]],
  ["what fails together is done one by one, and fails alone", ["a", "bad", "c"], ["a", "c", "failed"]],
  ["nothing is nothing", [], []],
])("%s", async (_what, items, groups) => expect(await groupsOf(items)).toEqual(groups));
