/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { Database } from "@millwright/database";
import { as, type FactoryUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { needs } from "@millwright/testing";
import { branchUpdated } from "../src/events/branch-events.ts";
import { originOf } from "../src/events/origin.ts";
import { branchStore, type DueBranch } from "../src/store/branch-store.ts";
import { changesOf, openPrisma } from "../src/store/prisma-client.ts";
import { Repository } from "./repository.ts";
import { OWNER, startWorld, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

let repository: Repository;
let w: World;
let database: Database;
let branches: ReturnType<typeof branchStore>;
beforeAll(async () => {
  repository = new Repository();
  repository.begin();
  repository.commit(aTree());
  w = await startWorld({ localRepositoryRoots: [repository.root] });
  database = Database.open(w.t.url, { max: 4 });
  const prisma = openPrisma(database);
  branches = branchStore(
    prisma,
    changesOf(prisma, () => {}),
    database.sql,
  );
});
afterAll(async () => {
  await database.close();
  await w.stop();
  repository.remove();
});

/** Returns two claims of a branch: the second claim was made while the poll of the first one was still running. */
async function polledTwice(): Promise<DueBranch[]> {
  const factoryUid = as<FactoryUid>((await w.aFactory()).uid);
  await w.factories.putSource({ factoryUid, source: { kind: "git", repositoryUrl: repository.path } }, call(OWNER));
  const claims: DueBranch[] = [];
  for (let n = 0; n < 2; n++) {
    await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 h'");
    claims.push(...(await branches.claimDue(10, 100 + n)).filter(({ branch }) => branch.factoryUid === factoryUid));
  }
  return claims;
}

const head = (of: string) => of.repeat(40);
const find = ({ branch: { uid }, claim }: DueBranch, of: string, isClaim = true) =>
  branches.observe(
    uid,
    { head: head(of), error: null },
    w.clock.now(),
    () => 60_000,
    (branch) => branchUpdated(branch, originOf(OWNER), ["registered_head_sha"]),
    isClaim ? claim : undefined,
  );

needs("git", "a read that took longer than one that started after it is ignored, whichever ends first", async () => {
  const [first, second] = await polledTwice();
  expect((await find(first!, "a"))?.registeredHeadSha).not.toBe(head("a"));
  expect((await find(second!, "b"))?.registeredHeadSha).toBe(head("b"));
  expect((await find(first!, "a"))?.registeredHeadSha).toBe(head("b"));
});
needs("git", "a read that was in progress when a push reported a head is ignored", async () => {
  const [, poll] = await polledTwice();
  await find(poll!, "c", false);
  expect((await find(poll!, "d"))?.registeredHeadSha).toBe(head("c"));
});
