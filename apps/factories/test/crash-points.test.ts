/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { Database } from "@millwright/database";
import { outboundRule } from "@millwright/outbound";
import { call } from "@millwright/rpc";
import { needs } from "@millwright/testing";
import { definitionOwners } from "../src/clients/definition-owners.ts";
import { definitionTrees } from "../src/clients/definition-trees.ts";
import { identityClient } from "../src/clients/identity-client.ts";
import { applyStore } from "../src/store/apply-store.ts";
import { automationStore } from "../src/store/automation-store.ts";
import { branchStore } from "../src/store/branch-store.ts";
import { factoryStore } from "../src/store/factory-store.ts";
import { changesOf, openPrisma } from "../src/store/prisma-client.ts";
import { sourceStore } from "../src/store/source-store.ts";
import { applyBranch } from "../src/usecases/branches.ts";
import { Repository } from "./repository.ts";
import { OWNER, startWorld, VIEWER, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

type ApplyDeps = Parameters<typeof applyBranch>[0];

let w: World;
let repository: Repository;
let database: Database;
let deps: ApplyDeps;

beforeAll(async () => {
  repository = new Repository();
  w = await startWorld({ localRepositoryRoots: [repository.root] });
  database = Database.open(w.t.url, { max: 2, applicationName: "a process that dies" });
  const prisma = openPrisma(database);
  const changes = changesOf(prisma, () => {});
  const owners = definitionOwners(
    [w.upstreams.identity, w.upstreams.orchestrator, w.upstreams.webhookIngress],
    w.signer,
  );
  const agents = identityClient(w.upstreams.identity, w.signer);
  deps = {
    factories: factoryStore(prisma, changes, database.sql),
    sources: sourceStore(prisma, changes),
    branches: branchStore(prisma, changes, database.sql),
    applies: applyStore(prisma, changes),
    automations: automationStore(database),
    owners,
    activation: { ...owners, ...agents },
    runs: { factoryOfRun: async () => undefined },
    trees: definitionTrees({
      localRepositoryRoots: [repository.root],
      outbound: outboundRule([]),
      timeoutMs: 20_000,
      fileBytesMax: 1e8,
      secretOf: async () => undefined,
    }),
    clock: w.clock,
    log: w.log,
    headPollMs: 30_000,
    activationWaitMs: 10_000,
  };
});
afterAll(async () => {
  await database.close();
  await w.stop();
  repository.remove();
});

/** The timeout of about fifty applies. */
const SLOW_MS = 600_000;

class Died extends Error {}
type When = "before" | "after";

/**
 * Returns the same dependencies for a process that crashes directly before or after its n-th call of a store or an
 * upstream service. Its later calls have no effect.
 */
function mortal(n: number, when: When): { deps: ApplyDeps; steps: string[]; isDead: () => boolean } {
  const steps: string[] = [];
  let dead = false;
  const step =
    (name: string, act: (...args: unknown[]) => Promise<unknown>) =>
    async (...args: unknown[]) => {
      if (dead) throw new Died();
      steps.push(name);
      const isLast = steps.length === n;
      if (isLast && when === "before") dead = true;
      if (dead) throw new Died();
      const answer = await act(...args);
      if (isLast) dead = true;
      if (dead) throw new Died();
      return answer;
    };
  const wrapped = Object.fromEntries(
    Object.entries(deps).map(([group, member]) => {
      if (
        !["factories", "sources", "branches", "applies", "automations", "owners", "activation", "trees"].includes(group)
      )
        return [group, member];
      return [
        group,
        Object.fromEntries(
          Object.entries(member as Record<string, (...args: unknown[]) => Promise<unknown>>).map(([name, act]) => [
            name,
            step(`${group}.${name}`, act),
          ]),
        ),
      ];
    }),
  );
  return { deps: wrapped as ApplyDeps, steps, isDead: () => dead };
}

/** Creates a factory that serves one version and has a newer head registered. */
async function prepared(): Promise<{ factoryUid: string; branchUid: string; first: string; second: string }> {
  await w.reset();
  repository.begin();
  const first = repository.commit(aTree());
  const factoryUid = (await w.aFactory()).uid;
  await w.factories.putSource({ factoryUid, source: { kind: "git", repositoryUrl: repository.path } }, call(OWNER));
  await w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 60_000 }));
  await w.service.work.drain();
  const second = repository.commit([
    { path: "factory.yaml", content: aTree()[0]!.content.replace("From files", "The second") },
  ]);
  await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 h'");
  await w.service.pollHeads();
  const [branch] = (await w.branches.listBranches({ factoryUid }, call(VIEWER))).branches;
  return { factoryUid, branchUid: branch!.uid, first, second };
}

async function served(factoryUid: string) {
  const { factory } = await w.factories.getFactory({ uid: factoryUid }, call(VIEWER));
  const version = Number(factory!.definitionVersion);
  return {
    version,
    description: factory!.description,
    owners: [w.identity.owner, w.orchestrator.owner].map((owner) => owner.active.get(factoryUid)),
  };
}

/**
 * Asserts the invariants after any crash: one version is active everywhere, nothing else is staged, and the event of
 * each version was published once.
 */
async function isWhole(factoryUid: string): Promise<void> {
  await w.service.work.drain();
  const { version, description, owners } = await served(factoryUid);
  expect(owners).toEqual([version, version]);
  expect(description).toBe(version === 1 ? "From files" : "The second");
  expect(await w.rows("SELECT version FROM definition_versions WHERE state = 'CURRENT'")).toEqual([{ version }]);
  expect(await w.rows("SELECT 1 FROM stream.work_items WHERE state NOT IN ('done')")).toEqual([]);
  expect((await w.eventTypes()).filter((type) => type === "definition.activated")).toHaveLength(version === 1 ? 1 : 2);
}

for (const when of ["before", "after"] as const) {
  needs(
    "git",
    `a process that dies ${when} any step of an apply leaves the active version intact, and the next apply completes it`,
    async () => {
      let steps: string[] = [];
      for (let n = 1, isDone = false; !isDone; n += 1) {
        const { factoryUid, branchUid, second } = await prepared();
        const process = mortal(n, when);
        await applyBranch(process.deps, OWNER, factoryUid, branchUid).catch(() => {});
        isDone = !process.isDead();
        steps = process.steps;
        // What was committed is completed by the enqueued work; what was not committed is not visible.
        await isWhole(factoryUid);
        await w.rows("UPDATE definition_sources SET apply_lease_until = now() - interval '1 s'");
        const applied = (await w.branches.applyBranch({ factoryUid, branchUid }, call(OWNER, { timeoutMs: 60_000 })))
          .branch;
        expect([n, applied]).toMatchObject([
          n,
          { state: "ACTIVE", freshness: "CURRENT", isServing: true, appliedSha: second, registeredHeadSha: second },
        ]);
        await isWhole(factoryUid);
        const { version } = await served(factoryUid);
        expect(version).toBeGreaterThan(1);
        for (const owner of [w.identity.owner, w.orchestrator.owner])
          expect([...owner.staged.keys()].filter((key) => !key.endsWith(`/1`))).toEqual([`${factoryUid}/${version}`]);
      }
      // The process has crashed at each of these steps.
      expect(new Set(steps)).toEqual(
        new Set(
          steps.concat(
            "applies.begin",
            "trees.take",
            "applies.open",
            "owners.stage",
            "applies.commit",
            "applies.end",
            "activation.activate",
            "activation.foremanOf",
            "applies.confirm",
          ),
        ),
      );
      expect(steps.length).toBeGreaterThan(15);
    },
    SLOW_MS,
  );
}
