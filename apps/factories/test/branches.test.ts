/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { rmSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { VERBS, type Caller } from "@millwright/caller";
import type { factories } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { aCaller, domainError, needs } from "@millwright/testing";
import { Repository } from "./repository.ts";
import {
  aRun,
  MEMBER,
  NOW,
  OTHER_TEAM,
  OWNER,
  POWERLESS,
  startWorld,
  OTHER_TEAM_OWNER,
  TEAM,
  VIEWER,
  type World,
} from "./setup.ts";
import { aTree } from "./trees.ts";

let w: World;
let repository: Repository;
let factoryUid: string;
let firstHead: string;

beforeAll(async () => {
  repository = new Repository();
  w = await startWorld({ localRepositoryRoots: [repository.root], gitTimeoutMs: 20_000 });
});
afterAll(async () => {
  await w.stop();
  repository.remove();
});
beforeEach(async () => {
  await w.reset();
  repository.begin();
  firstHead = repository.commit(aTree());
  factoryUid = (await w.aFactory()).uid;
  await put();
});

const put = (
  source: {
    repositoryUrl?: string;
    branch?: string;
    directory?: string;
    kind?: string;
    files?: ReturnType<typeof aTree>;
  } = {},
) =>
  w.factories.putSource(
    { factoryUid, source: { kind: "git", repositoryUrl: repository.path, ...source } },
    call(OWNER),
  );
const list = async () => (await w.branches.listBranches({ factoryUid }, call(VIEWER))).branches;
const production = async () => (await list()).find(({ isProduction }) => isProduction)!;
const get = async (branchUid: string, caller: Caller = VIEWER) =>
  (await w.branches.getBranch({ factoryUid, branchUid }, call(caller))).branch!;
const track = async (name: string) => (await w.branches.trackBranch({ factoryUid, name }, call(OWNER))).branch!;
const remove = (branchUid: string, caller: Caller = OWNER) =>
  w.branches.deleteBranch({ factoryUid, branchUid }, call(caller));
const apply = async (branchUid: string, caller: Caller = OWNER, client = w.branches) =>
  (await client.applyBranch({ factoryUid, branchUid }, call(caller, { timeoutMs: 60_000 }))).branch!;
/** Polls every head now. */
const pollHeads = async () => {
  await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 s'");
  while ((await w.service.pollHeads()) === "again");
};
const polledBranch = async (): Promise<factories.Branch> => {
  await pollHeads();
  return production();
};
const gone = domainError({ kind: "not_found", reason: "branch_not_found" });

describe("what is tracked", () => {
  needs("git", "is the branch that a registered repository names, with every field", async () => {
    expect(await polledBranch()).toMatchObject({
      factoryUid,
      teamUid: TEAM,
      name: "main",
      repository: { owner: "team", repo: "factory", codeForge: "NONE" },
      state: "ACTIVE",
      freshness: "STALE",
      isProduction: true,
      isServing: false,
      registeredHeadSha: firstHead,
      lastCheckedAt: { seconds: BigInt(NOW.getTime() / 1000) },
      createdAt: expect.anything(),
      updatedAt: expect.anything(),
    });
    const { appliedSha, lastAppliedAt, lastError, deletedAt } = await production();
    expect([appliedSha, lastAppliedAt, lastError, deletedAt]).toEqual([undefined, undefined, undefined, undefined]);
    expect(await w.eventTypes()).toEqual(["factory.created", "factory.updated", "branch.created", "branch.updated"]);
  });
  test("is UNKNOWN until its head was read", async () =>
    expect(await production()).toMatchObject({ freshness: "UNKNOWN", state: "ACTIVE" }));
  test("stays the same when the same source is registered again, and so does its identity with another directory", async () => {
    const { uid } = await production();
    await put();
    await put({ directory: "deploy" });
    expect(await list()).toMatchObject([{ uid, isProduction: true }]);
  });
  test("with another branch of the repository the production mark moves, and both are tracked", async () => {
    const { uid } = await production();
    await put({ branch: "next" });
    expect(await list()).toMatchObject([
      { name: "next", isProduction: true },
      { uid, name: "main", isProduction: false },
    ]);
    await put();
    expect((await list()).map(({ name }) => name)).toEqual(["main", "next"]);
    expect((await production()).uid).toBe(uid);
  });
  test.each([
    ["another repository", () => put({ repositoryUrl: `${repository.root}/team/other` })],
    ["files", () => put({ kind: "files", files: aTree() })],
  ])("is retired when the source becomes %s", async (_what, change) => {
    const [{ uid }, other] = [await production(), await track("other")];
    await change();
    for (const one of [uid, other.uid])
      expect(await get(one)).toMatchObject({ state: "DELETED", isProduction: false, freshness: "UNKNOWN" });
    expect((await list()).every((one) => one.uid !== uid && one.uid !== other.uid)).toBe(true);
  });
  test("further branches are tracked by name, once", async () => {
    const [first, second] = [
      await w.branches.trackBranch({ factoryUid, name: "b/1" }, call(OWNER)),
      await w.branches.trackBranch({ factoryUid, name: "b/1" }, call(OWNER)),
    ];
    expect([first.created, second.created, second.branch]).toEqual([true, false, first.branch]);
    expect(await w.branches.trackBranch({ factoryUid, name: "main" }, call(OWNER))).toMatchObject({
      created: false,
      branch: { isProduction: true },
    });
    expect((await list()).map(({ name }) => name)).toEqual(["main", "b/1"]);
  });
  test("of many at once, on two replicas, one is made", async () => {
    const clients = [w.branches, w.branchesOf(await w.replica())];
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, n) => clients[n % 2]!.trackBranch({ factoryUid, name: "one" }, call(OWNER))),
    );
    expect([new Set(made.map(({ branch }) => branch!.uid)).size, made.filter(({ created }) => created).length]).toEqual(
      [1, 1],
    );
  });
  test.each(["", "-x", "a..b", "a b", "refs~1", "x.lock", "HEAD"])("no branch is called %j", async (name) => {
    await expect(track(name)).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "invalid_source" }));
  });
  test("at most 50", async () => {
    for (let n = 1; n < 50; n += 1) await track(`b${n}`);
    await expect(track("b50")).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "too_many_branches" }));
    expect(await list()).toHaveLength(50);
  });
  test("requires a repository", async () => {
    await put({ kind: "files", files: aTree() });
    await expect(track("x")).rejects.toEqual(domainError({ kind: "conflict", reason: "source_not_git" }));
    expect(await list()).toEqual([]);
  });
});

describe("who may", () => {
  const LETTER_ONLY = aCaller({ teams: [{ teamUid: TEAM, verbs: ["factory.view", "source.apply"] }] });
  const actions = {
    list: (caller: Caller) => w.branches.listBranches({ factoryUid }, call(caller)),
    get: async (caller: Caller) => get((await production()).uid, caller),
    track: (caller: Caller) => w.branches.trackBranch({ factoryUid, name: "t" }, call(caller)),
    delete: (caller: Caller) => remove(newUid(), caller),
    apply: async (caller: Caller) => apply((await production()).uid, caller),
  };
  const refused = domainError({ kind: "permission_denied", reason: "not_authorized" });
  const hidden = domainError({ kind: "not_found", reason: "factory_not_found" });
  test.each(["list", "get"] as const)("%s: every member with the right to view", async (action) => {
    for (const caller of [OWNER, MEMBER, VIEWER]) await actions[action](caller);
    await expect(actions[action](POWERLESS)).rejects.toEqual(refused);
    await expect(actions[action](OTHER_TEAM_OWNER)).rejects.toEqual(hidden);
  });
  test.each(["track", "delete", "apply"] as const)("%s: only with source.apply", async (action) => {
    for (const caller of [MEMBER, VIEWER, POWERLESS]) await expect(actions[action](caller)).rejects.toEqual(refused);
    await expect(actions[action](OTHER_TEAM_OWNER)).rejects.toEqual(hidden);
    expect(
      await w.rows(
        "SELECT 1 FROM tracked_branches WHERE deleted_at IS NOT NULL OR applied_sha IS NOT NULL OR name = 't'",
      ),
    ).toEqual([]);
  });
  test("tracking and retiring require no more than that", async () => {
    await actions.track(LETTER_ONLY);
    await remove((await list())[1]!.uid, LETTER_ONLY);
    expect(await list()).toHaveLength(1);
  });
  needs(
    "git",
    "applying requires permission to change everything that the plan touches, otherwise nothing changes",
    async () => {
      const tracked = await polledBranch();
      const { uid } = tracked;
      const before = await w.rows("SELECT name, current_version FROM factories");
      await expect(apply(uid, LETTER_ONLY)).rejects.toEqual(refused);
      expect(await w.rows("SELECT name, current_version FROM factories")).toEqual(before);
      expect(await get(uid)).toEqual(tracked);
      await w.service.work.drain();
      expect([...w.identity.owner.staged.keys(), ...w.orchestrator.owner.staged.keys()]).toEqual([]);
    },
  );
  needs("git", "applying a branch that defines a webhook requires webhook.manage", async () => {
    repository.commit(aTree({ "webhooks/ci.yaml": "secretName: CI\n" }));
    const { uid } = await polledBranch();
    const applier = aCaller({ teams: [{ teamUid: TEAM, verbs: VERBS.filter((verb) => verb !== "webhook.manage") }] });
    await expect(apply(uid, applier)).rejects.toMatchObject({
      reason: "not_authorized",
      metadata: { verb: "webhook.manage" },
    });
    expect(await w.rows("SELECT current_version FROM factories")).toEqual([{ current_version: 0 }]);
    await apply(uid);
    expect(await w.rows("SELECT current_version > 0 AS is_serving FROM factories")).toEqual([{ is_serving: true }]);
  });
  test("a run has no branches of other factories", async () => {
    const run = w.orchestrator.created({ teamUid: TEAM, factoryUid: newUid() });
    await expect(actions.list(aRun(run.uid))).rejects.toEqual(hidden);
  });
  test("a branch of another factory or team is indistinguishable from an unknown one", async () => {
    const ours = await production();
    const other = await w.aFactory({ name: "Other" });
    const theirs = await w.aFactory(
      { name: "Theirs" },
      aCaller({ teams: [{ teamUid: OTHER_TEAM, verbs: OWNER.teams[0]!.verbs }] }),
    );
    expect(theirs.uid).not.toBe(other.uid);
    for (const branchUid of [ours.uid, newUid(), "x"]) {
      await expect(w.branches.getBranch({ factoryUid: other.uid, branchUid }, call(OWNER))).rejects.toEqual(gone);
      await expect(w.branches.applyBranch({ factoryUid: other.uid, branchUid }, call(OWNER))).rejects.toEqual(gone);
      await w.branches.deleteBranch({ factoryUid: other.uid, branchUid }, call(OWNER));
      await expect(w.branches.getBranch({ factoryUid: theirs.uid, branchUid }, call(OWNER))).rejects.toEqual(hidden);
      await expect(w.branches.deleteBranch({ factoryUid: theirs.uid, branchUid }, call(OWNER))).rejects.toEqual(hidden);
    }
    expect(await get(ours.uid)).toEqual(ours);
  });
});

test("reading writes nothing", async () => {
  const { uid } = await production();
  const rows = async () => [
    await w.rows("SELECT xmin::text, * FROM tracked_branches"),
    await w.rows("SELECT xmin::text, * FROM definition_sources"),
    await w.rows("SELECT xmin::text, * FROM factories"),
  ];
  const [before, events] = [await rows(), await w.eventTypes()];
  await get(uid);
  await list();
  await expect(get(newUid())).rejects.toEqual(gone);
  expect([await rows(), await w.eventTypes()]).toEqual([before, events]);
});

describe("retiring", () => {
  needs(
    "git",
    "does not change the repository, the active version or the production branch, and can be repeated",
    async () => {
      repository.git("branch", "side");
      const { uid } = await track("side");
      await pollHeads();
      const applied = await apply(uid);
      expect(applied).toMatchObject({ state: "ACTIVE", freshness: "CURRENT", isServing: true, appliedSha: firstHead });
      const before = [
        await production(),
        (await w.factories.getFactory({ uid: factoryUid }, call(OWNER))).factory,
        repository.git("rev-parse", "side"),
      ];
      await remove(uid);
      const retired = await get(uid);
      expect(retired).toMatchObject({
        state: "DELETED",
        freshness: "UNKNOWN",
        appliedSha: firstHead,
        registeredHeadSha: firstHead,
        deletedAt: expect.anything(),
        isServing: true,
      });
      for (const again of [uid, uid, newUid(), "not-a-uid"]) await remove(again);
      expect(await get(uid)).toEqual(retired);
      expect([
        await production(),
        (await w.factories.getFactory({ uid: factoryUid }, call(OWNER))).factory,
        repository.git("rev-parse", "side"),
      ]).toEqual(before);
      expect((await w.eventTypes()).filter((type) => type === "branch.untracked")).toHaveLength(1);
    },
  );
  test("the production branch is rejected", async () => {
    const { uid } = await production();
    await expect(remove(uid)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "production_branch", retryable: false }),
    );
    expect(await production()).toMatchObject({ uid, state: "ACTIVE" });
  });
  needs("git", "a retired identity is never revived: not by applying, reading, registering or tracking", async () => {
    repository.git("branch", "side");
    const { uid } = await track("side");
    await remove(uid);
    await expect(apply(uid)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "branch_deleted", retryable: false }),
    );
    await pollHeads();
    await put({ branch: "side" });
    expect((await production()).uid).not.toBe(uid);
    await put();
    expect((await track("side")).uid).not.toBe(uid);
    expect(await get(uid)).toMatchObject({ state: "DELETED" });
  });
  test("is deleted after 30 days; deleting it again returns 204", async () => {
    const { uid } = await track("side");
    await remove(uid);
    await w.rows("UPDATE tracked_branches SET deleted_at = now() - interval '29 days 23 hours' WHERE uid = $1", [uid]);
    await w.service.pollHeads();
    expect(await get(uid)).toMatchObject({ state: "DELETED" });
    await w.rows("UPDATE tracked_branches SET deleted_at = now() - interval '30 days 1 minute' WHERE uid = $1", [uid]);
    await w.service.pollHeads();
    await expect(get(uid)).rejects.toEqual(gone);
    await remove(uid);
    await expect(apply(uid)).rejects.toEqual(gone);
  });
});

describe("applying", () => {
  needs(
    "git",
    "applies the tree at the registered head, not a newer one, which makes it STALE when it is registered",
    async () => {
      const { uid } = await polledBranch();
      const newer = repository.commit([
        { path: "agents/hand/agent.md", content: "---\nagentType: IMPLEMENT\n---\nDo it well.\n" },
      ]);
      expect(await apply(uid)).toMatchObject({
        state: "ACTIVE",
        freshness: "CURRENT",
        isServing: true,
        appliedSha: firstHead,
        registeredHeadSha: firstHead,
        lastAppliedAt: { seconds: BigInt(NOW.getTime() / 1000) },
      });
      expect(w.identity.owner.activeDefinition(factoryUid)).toMatchObject({
        agents: [{ prompt: "Plan." }, { prompt: "Do." }],
      });
      expect((await w.factories.getSource({ factoryUid }, call(VIEWER))).source).toMatchObject({
        state: "APPLIED",
        activeRevision: firstHead,
        activeVersion: 1n,
      });
      await pollHeads();
      expect(await get(uid)).toMatchObject({
        freshness: "STALE",
        registeredHeadSha: newer,
        appliedSha: firstHead,
        isServing: true,
      });
      expect(await apply(uid)).toMatchObject({ freshness: "CURRENT", appliedSha: newer });
      expect(w.identity.owner.activeDefinition(factoryUid)).toMatchObject({
        agents: [{ prompt: "Plan." }, { prompt: "Do it well." }],
      });
    },
  );
  needs("git", "applying the source uses the newest head, and registers it", async () => {
    await pollHeads();
    const newer = repository.commit();
    await w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 60_000 }));
    expect(await production()).toMatchObject({
      state: "ACTIVE",
      freshness: "CURRENT",
      registeredHeadSha: newer,
      appliedSha: newer,
    });
  });
  needs(
    "git",
    "concurrently, on two replicas, is one application with one answer; and again changes nothing",
    async () => {
      const { uid } = await polledBranch();
      const clients = [w.branches, w.branchesOf(await w.replica())];
      const answers = await Promise.all(Array.from({ length: 6 }, (_, n) => apply(uid, OWNER, clients[n % 2])));
      answers.push(await apply(uid));
      for (const answer of answers)
        expect(answer).toMatchObject({ uid, state: "ACTIVE", freshness: "CURRENT", appliedSha: firstHead });
      expect([w.identity.owner.stages, w.orchestrator.owner.stages]).toEqual([1, 1]);
      expect((await w.eventTypes()).filter((type) => type === "definition.activated")).toHaveLength(1);
    },
  );
  needs("git", "the head of a branch that was not read yet is read first", async () => {
    const { uid, registeredHeadSha } = await production();
    expect(registeredHeadSha).toBeUndefined();
    expect(await apply(uid)).toMatchObject({ registeredHeadSha: firstHead, appliedSha: firstHead });
  });
  needs("git", "a branch that the repository does not have is a conflict", async () => {
    const { uid } = await track("nothing");
    await expect(apply(uid)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "branch_head_unknown", retryable: false }),
    );
    expect(await get(uid)).toMatchObject({
      state: "ACTIVE",
      freshness: "UNKNOWN",
      lastError: { code: "branch_missing" },
    });
  });
  needs(
    "git",
    "a definition with problems is rejected with all of them, which remain readable, and the active version remains",
    async () => {
      const { uid } = await polledBranch();
      await apply(uid);
      repository.commit([{ path: "agents/hand/agent.md", content: "---\nagentType: BOSS\ncolour: red\n---\n" }]);
      await pollHeads();
      const error = await apply(uid).catch((thrown: unknown) => thrown);
      expect(error).toEqual(domainError({ kind: "invalid_argument", reason: "definition_invalid" }));
      expect((error as { details: unknown[] }).details).toHaveLength(3);
      expect(await get(uid)).toMatchObject({
        state: "FAILED",
        freshness: "STALE",
        isServing: true,
        appliedSha: firstHead,
        lastError: { code: "definition_invalid", diagnostics: (error as { details: unknown[] }).details },
      });
      expect((await w.factories.getFactory({ uid: factoryUid }, call(OWNER))).factory).toMatchObject({
        definitionVersion: 1n,
      });
      repository.git("revert", "--no-edit", "HEAD");
      await pollHeads();
      const repaired = await apply(uid);
      expect(repaired).toMatchObject({ state: "ACTIVE", freshness: "CURRENT" });
      expect(repaired.lastError).toBeUndefined();
    },
  );
  needs(
    "git",
    "another branch can be activated, then the production branch again; its failure is not the source's",
    async () => {
      repository.git("checkout", "-q", "-b", "side");
      const side = repository.commit([
        { path: "agents/hand/agent.md", content: "---\nagentType: IMPLEMENT\n---\nAside.\n" },
      ]);
      const { uid } = await track("side");
      const main = await polledBranch();
      await apply(main.uid);
      expect(await apply(uid)).toMatchObject({ isServing: true, freshness: "CURRENT", appliedSha: side });
      expect(await get(main.uid)).toMatchObject({
        isServing: false,
        freshness: "CURRENT",
        state: "ACTIVE",
        appliedSha: firstHead,
      });
      expect(await apply(main.uid)).toMatchObject({ isServing: true });
      expect(w.identity.owner.activeDefinition(factoryUid)).toMatchObject({
        agents: [{ prompt: "Plan." }, { prompt: "Do." }],
      });
      repository.commit([{ path: "factory.yaml", content: "name: 1\n" }]);
      await pollHeads();
      await expect(apply(uid)).rejects.toEqual(domainError({ reason: "definition_invalid" }));
      expect((await w.factories.getSource({ factoryUid }, call(VIEWER))).source).toMatchObject({
        state: "APPLIED",
        diagnostics: [],
      });
      repository.git("checkout", "-q", "main");
    },
  );
  needs(
    "git",
    "tracking that is retired while it is applied is not brought back, and what served serves on",
    async () => {
      repository.git("branch", "side");
      const { uid } = await track("side");
      await pollHeads();
      w.identity.owner.onStage = async () => void (await remove(uid));
      await expect(apply(uid)).rejects.toEqual(domainError({ kind: "conflict", reason: "branch_deleted" }));
      expect(await get(uid)).toMatchObject({ state: "DELETED" });
      expect((await w.factories.getFactory({ uid: factoryUid }, call(OWNER))).factory).toMatchObject({
        definitionVersion: 0n,
        name: "Shop",
      });
    },
  );
  needs("git", "what an owner has not confirmed yet is APPLYING", async () => {
    const { uid } = await polledBranch();
    let open: () => void = () => {};
    w.orchestrator.owner.gate = new Promise((resolve) => (open = resolve));
    const late = w.branchesOf(await w.replica({ activationWaitMs: 20 }));
    expect(await apply(uid, OWNER, late)).toMatchObject({ state: "APPLYING", freshness: "CURRENT", isServing: true });
    open();
    expect(await apply(uid)).toMatchObject({ state: "ACTIVE" });
  });
});

describe("heads", () => {
  needs("git", "are registered when they move, with one event", async () => {
    await pollHeads();
    const second = repository.commit();
    await pollHeads();
    await pollHeads();
    expect(await production()).toMatchObject({ registeredHeadSha: second, freshness: "STALE" });
    const published = await w.rows<{ payload: object }>(
      "SELECT payload, position AS at FROM stream.event_log WHERE type LIKE '%branch.updated%' UNION ALL SELECT payload, seq FROM stream.event_pending WHERE type LIKE '%branch.updated%' ORDER BY at",
    );
    expect(published.map(({ payload }) => payload)).toEqual(
      [firstHead, second].map((sha) => ({
        factory_uid: factoryUid,
        name: "main",
        is_production: true,
        registered_head_sha: sha,
        changed: ["registered_head_sha"],
      })),
    );
  });
  needs("git", "follow a force push", async () => {
    await apply((await polledBranch()).uid);
    repository.git("commit", "-q", "--amend", "--allow-empty", "-m", "rewritten");
    const rewritten = repository.git("rev-parse", "HEAD");
    expect(await polledBranch()).toMatchObject({
      registeredHeadSha: rewritten,
      freshness: "STALE",
      appliedSha: firstHead,
    });
    expect(await apply((await production()).uid)).toMatchObject({ freshness: "CURRENT", appliedSha: rewritten });
  });
  needs(
    "git",
    "a registered head that a force push has swept away is a conflict, until the new one is registered",
    async () => {
      const { uid } = await polledBranch();
      repository.git("commit", "-q", "--amend", "--allow-empty", "-m", "rewritten");
      repository.git("reflog", "expire", "--expire=now", "--all");
      repository.git("gc", "-q", "--prune=now");
      await expect(apply(uid)).rejects.toEqual(
        domainError({ kind: "conflict", reason: "branch_head_gone", retryable: true }),
      );
      expect(await get(uid)).toMatchObject({ state: "FAILED", lastError: { code: "branch_head_gone" } });
      await pollHeads();
      expect(await apply(uid)).toMatchObject({ state: "ACTIVE", appliedSha: repository.git("rev-parse", "HEAD") });
    },
  );
  needs("git", "of a deleted branch are UNKNOWN; when it exists again it continues under its identity", async () => {
    const applied = await apply((await polledBranch()).uid);
    repository.git("checkout", "-q", "-b", "elsewhere");
    repository.git("branch", "-q", "-D", "main");
    const missing = await polledBranch();
    expect(missing).toMatchObject({
      uid: applied.uid,
      state: "ACTIVE",
      freshness: "UNKNOWN",
      appliedSha: firstHead,
      isServing: true,
      lastError: { code: "branch_missing" },
    });
    expect(missing.registeredHeadSha).toBeUndefined();
    await expect(apply(applied.uid)).rejects.toEqual(domainError({ kind: "conflict", reason: "branch_head_unknown" }));
    repository.git("branch", "main");
    expect(await polledBranch()).toMatchObject({
      uid: applied.uid,
      freshness: "CURRENT",
      registeredHeadSha: firstHead,
    });
  });
  needs(
    "git",
    "of a local repository that is missing are UNKNOWN, at once and after an apply that could not read it",
    async () => {
      const applied = await apply((await polledBranch()).uid);
      expect(applied).toMatchObject({ freshness: "CURRENT", state: "ACTIVE" });
      rmSync(repository.path, { recursive: true });
      const missing = { freshness: "UNKNOWN", appliedSha: firstHead, registeredHeadSha: firstHead };
      expect([await production(), await get(applied.uid)]).toMatchObject([missing, missing]);
      expect(await polledBranch()).toMatchObject({
        ...missing,
        state: "ACTIVE",
        lastError: { code: "source_unreachable" },
      });
    },
  );
  needs("git", "of a repository that an apply could not read are UNKNOWN from then on", async () => {
    const applied = await apply((await polledBranch()).uid);
    repository.git("config", "core.repositoryformatversion", "99");
    await expect(w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 60_000 }))).rejects.toEqual(
      domainError({ reason: "source_unreachable" }),
    );
    expect(await get(applied.uid)).toMatchObject({
      freshness: "UNKNOWN",
      state: "FAILED",
      lastError: { code: "source_unreachable" },
    });
  });
  needs("git", "of an unreachable repository are UNKNOWN, and polled with backoff until it is back", async () => {
    const before = await polledBranch();
    repository.git("config", "core.repositoryformatversion", "99");
    const pauses: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      const away = await polledBranch();
      expect(away).toMatchObject({
        freshness: "UNKNOWN",
        registeredHeadSha: firstHead,
        state: "ACTIVE",
        lastError: { code: "source_unreachable", diagnostics: [] },
      });
      const [row] = await w.rows<{ pause: string }>(
        "SELECT extract(epoch FROM poll_at - now()) AS pause FROM tracked_branches WHERE factory_uid = $1",
        [factoryUid],
      );
      pauses.push(Number(row!.pause));
    }
    expect(pauses[3]!).toBeGreaterThan(pauses[0]! * 3);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(360);
    repository.git("config", "--file", `${repository.path}/.git/config`, "core.repositoryformatversion", "0");
    const back = await polledBranch();
    expect(back).toMatchObject({ uid: before.uid, freshness: "STALE", registeredHeadSha: firstHead });
    expect(back.lastError).toBeUndefined();
  });
  needs("git", "are polled by one replica each", async () => {
    const other = await w.replica();
    for (const name of ["a", "b", "c", "d", "e", "f"]) await track(name);
    await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 s'");
    await Promise.all(
      [w.service, other, w.service, other].map(async (replica) => {
        while ((await replica.pollHeads()) === "again");
      }),
    );
    // A branch that was polled twice would have failed twice.
    expect(
      await w.rows("SELECT name, poll_failures FROM tracked_branches WHERE name <> 'main' AND poll_failures <> 1"),
    ).toEqual([]);
    expect(await w.rows("SELECT 1 FROM tracked_branches WHERE poll_at <= now()")).toEqual([]);
  });
  needs("git", "of deleted factories are not polled", async () => {
    await w.factories.deleteFactory({ uid: factoryUid }, call(OWNER));
    await pollHeads();
    expect(await w.rows("SELECT last_checked_at FROM tracked_branches")).toEqual([{ last_checked_at: null }]);
  });
});
