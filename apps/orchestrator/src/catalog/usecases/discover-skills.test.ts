import { expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { newUid, type TeamUid } from "@millwright/ids";
import { skillsOfRepositories, type DiscoverSkillsDeps } from "./discover-skills.ts";
import { SharedReads } from "@millwright/database";

const owner = { type: "team", uid: newUid<TeamUid>() } as const;

/** Returns a code host whose reads end on request. */
function aCodeHost() {
  const reads: { repository: string; end: (skill: string) => void; fail: () => void }[] = [];
  const readFiles = (repository: { owner: string; repo: string }) =>
    new Promise<{ path: string; content: Uint8Array }[]>((resolve, reject) => {
      const end = (skill: string) =>
        resolve([
          { path: `skills/${skill}/SKILL.md`, content: Buffer.from(`---\nname: ${skill}\ndescription: d\n---\n\nx\n`) },
        ]);
      reads.push({ repository: repository.repo, end, fail: () => reject(new Error("away")) });
    });
  const deps = {
    codeHosts: { list: async () => [] },
    identity: { resolveSecrets: async () => ({}) },
    openCodeHost: () => ({ host: { readFiles } }),
    readSkills: async () => [],
    putSkills: async () => {},
    reads: new SharedReads(),
    clock: systemClock,
  } as unknown as DiscoverSkillsDeps;
  const refresh = async (repo: string, who = owner) =>
    (await skillsOfRepositories(deps, who, [{ owner: "acme", repo }], true)).map(({ name }) => name);
  /** Resolves after the previous requests have reached the code host. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { reads, refresh, settled };
}

test("concurrent refreshes cause at most two reads, and no caller receives data from before its call", async () => {
  const { reads, refresh, settled } = aCodeHost();
  const first = refresh("shop");
  await settled();
  const others = [refresh("shop"), refresh("shop"), refresh("shop")];
  const elsewhere = refresh("other");
  await settled();
  expect(reads.map(({ repository }) => repository)).toEqual(["shop", "other"]);
  reads[1]!.end("else");
  reads[0]!.end("before");
  expect([await first, await elsewhere]).toEqual([["before"], ["else"]]);
  await settled();
  expect(reads).toHaveLength(3);
  const late = refresh("shop"); // requested after the second read began
  await settled();
  expect(reads).toHaveLength(3);
  reads[2]!.end("after");
  expect(await Promise.all(others)).toEqual(Array(3).fill(["after"]));
  await settled();
  reads[3]!.end("late");
  expect(await late).toEqual(["late"]);
});

test("a failed read neither blocks the next read nor discards the skills of the last successful read", async () => {
  const { reads, refresh, settled } = aCodeHost();
  const [first, second] = [refresh("shop"), refresh("shop")];
  await settled();
  reads[0]!.fail();
  expect(await first).toEqual([]);
  await settled();
  const third = refresh("shop");
  reads[1]!.end("there");
  expect(await second).toEqual(["there"]);
  await settled();
  reads[2]!.fail();
  expect(await third).toEqual(["there"]);
});

test("skills are cached per owner", async () => {
  const { reads, refresh, settled } = aCodeHost();
  const [mine, theirs] = [refresh("shop"), refresh("shop", { type: "team", uid: newUid<TeamUid>() })];
  await settled();
  reads[0]!.end("mine");
  reads[1]!.end("theirs");
  expect([await mine, await theirs]).toEqual([["mine"], ["theirs"]]);
});
