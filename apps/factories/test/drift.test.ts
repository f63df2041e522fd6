/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { call } from "@millwright/rpc";
import { domainError, needs } from "@millwright/testing";
import { Repository } from "./repository.ts";
import { OWNER, POWERLESS, startWorld, OTHER_TEAM_OWNER, VIEWER, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

let w: World;
let repository: Repository;
let factoryUid: string;
let first: string;

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
  first = repository.commit(aTree());
  factoryUid = (await w.aFactory()).uid;
  await w.factories.putSource({ factoryUid, source: { kind: "git", repositoryUrl: repository.path } }, call(OWNER));
});
const drift = (caller = VIEWER) => w.factories.getDrift({ factoryUid }, call(caller, { timeoutMs: 30_000 }));
const apply = () => w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 30_000 }));
const pollHeads = async () => {
  await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 s'");
  await w.service.pollHeads();
};

needs("git", "there is none when the head is in force and every owner serves it", async () => {
  await apply();
  w.identity.owner.isServing = w.orchestrator.owner.isServing = true;
  expect(await drift()).toMatchObject({
    activeVersion: 1n,
    activeRevision: first,
    serving: [],
    head: { state: "SAME", revision: first, plan: [], diagnostics: [] },
  });
});
needs(
  "git",
  "differences of a service from the definition are reported field by field, also of the factory's own record",
  async () => {
    await apply();
    w.orchestrator.owner.isServing = true;
    w.identity.owner.plan = [
      { kind: "agent", name: "foreman", action: "update", changedFields: ["prompt"] },
      { kind: "agent", name: "hand", action: "unchanged", changedFields: [] },
    ];
    await w.rows("UPDATE factories SET description = 'By hand' WHERE uid = $1", [factoryUid]);
    const { serving } = await drift();
    expect(serving.map(({ kind, name, action, changedFields }) => [kind, name, action, changedFields])).toEqual([
      ["agent", "foreman", "update", ["prompt"]],
      ["factory", "factory.yaml", "update", ["description"]],
    ]);
  },
);
needs(
  "git",
  "a repair restores what a service has lost, applying the same version does not; also for the factory's own record",
  async () => {
    await apply();
    const owners = [w.identity.owner, w.orchestrator.owner];
    const [agents] = owners.map((owner) => owner.activeDefinition(factoryUid));
    w.identity.owner.reset(); // as if its database had been restored
    await w.rows("UPDATE factories SET description = 'By hand' WHERE uid = $1", [factoryUid]);
    await apply();
    expect([w.identity.owner.activeDefinition(factoryUid), (await drift()).serving.length > 0]).toEqual([
      undefined,
      true,
    ]);
    const { source } = await w.factories.applySource({ factoryUid, repair: true }, call(OWNER, { timeoutMs: 30_000 }));
    expect(source).toMatchObject({ state: "APPLIED", activeVersion: 2n, activeRevision: first });
    expect(owners.map((owner) => owner.active.get(factoryUid))).toEqual([2, 2]);
    expect([
      w.identity.owner.activeDefinition(factoryUid),
      (await w.factories.getFactory({ uid: factoryUid }, call(VIEWER))).factory!.description,
    ]).toEqual([agents, "From files"]);
    for (const owner of owners) owner.isServing = true;
    expect(await drift()).toMatchObject({ activeVersion: 2n, serving: [], head: { state: "SAME" } });
    expect((await w.eventTypes()).filter((type) => type === "definition.activated")).toHaveLength(2);
  },
);
needs(
  "git",
  "a repair does not change automations, applies the newest head, and leaves the active version if the head has problems",
  async () => {
    repository.commit([
      {
        path: "automations/nightly/automation.md",
        content:
          "---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule: { cron: '@daily' }\n---\nTidy up.\n",
      },
    ]);
    await apply();
    const automations = () => w.automations.listAutomations({ factoryUid }, call(VIEWER));
    const before = await automations();
    const repair = (caller = OWNER) =>
      w.factories.applySource({ factoryUid, repair: true }, call(caller, { timeoutMs: 30_000 }));
    await repair();
    expect(await automations()).toEqual(before);
    await expect(repair(VIEWER)).rejects.toEqual(domainError({ reason: "not_authorized" }));
    repository.commit([{ path: "agents/hand/agent.md", content: "x" }]);
    await expect(repair()).rejects.toEqual(domainError({ reason: "definition_invalid" }));
    expect(await w.rows("SELECT version FROM definition_versions WHERE state = 'CURRENT'")).toEqual([{ version: 2 }]);
  },
);
needs(
  "git",
  "a head that is registered but not applied is reported as the changes that applying it would make",
  async () => {
    await apply();
    w.identity.owner.isServing = w.orchestrator.owner.isServing = true;
    const second = repository.commit([
      {
        path: "automations/nightly/automation.md",
        content:
          "---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule: { cron: '@daily' }\n---\nTidy up.\n",
      },
    ]);
    expect((await drift()).head).toMatchObject({ state: "SAME", revision: first });
    await pollHeads();
    const { head, serving } = await drift();
    expect(serving).toEqual([]);
    expect(head).toMatchObject({
      state: "DIFFERS",
      revision: second,
      plan: [{ kind: "automation", name: "nightly", action: "create" }],
    });
    expect((await w.factories.getSource({ factoryUid }, call(VIEWER))).source).toMatchObject({ activeRevision: first });
  },
);
needs("git", "a head that could not be applied is reported with its diagnostics", async () => {
  await apply();
  const broken = repository.commit([{ path: "agents/hand/agent.md", content: "x" }]);
  await pollHeads();
  expect((await drift()).head).toMatchObject({
    state: "INVALID",
    revision: broken,
    plan: [],
    diagnostics: [{ path: "agents/hand/agent.md", code: "FF_PARSE_ERROR" }],
  });
});
needs("git", "a head that is not known, or cannot be read, is UNKNOWN and no error", async () => {
  expect(await drift()).toMatchObject({ activeVersion: 0n, serving: [], head: { state: "UNKNOWN" } });
  await pollHeads();
  repository.begin("elsewhere");
  expect((await drift()).head).toMatchObject({ state: "UNKNOWN", revision: first, errorCode: "branch_head_gone" });
  await pollHeads();
  expect((await drift()).head).toMatchObject({ state: "UNKNOWN", errorCode: "branch_missing" });
});
test("of files, those that are registered are compared with those in force", async () => {
  await w.factories.putSource({ factoryUid, source: { kind: "files", files: aTree() } }, call(OWNER));
  await apply();
  w.identity.owner.isServing = w.orchestrator.owner.isServing = true;
  expect((await drift()).head).toMatchObject({ state: "SAME" });
  await w.factories.putSource(
    {
      factoryUid,
      source: { kind: "files", files: aTree({ "factory.yaml": aTree()[0]!.content.replace("From files", "Changed") }) },
    },
    call(OWNER),
  );
  expect((await drift()).head).toMatchObject({
    state: "DIFFERS",
    plan: [{ kind: "factory", action: "update", changedFields: ["description"] }],
  });
});
test("it requires permission to view the factory, and a source", async () => {
  await expect(drift(POWERLESS)).rejects.toEqual(domainError({ reason: "not_authorized" }));
  await expect(drift(OTHER_TEAM_OWNER)).rejects.toEqual(domainError({ reason: "factory_not_found" }));
  factoryUid = (await w.aFactory({ name: "Live" })).uid;
  await expect(drift()).rejects.toEqual(domainError({ kind: "conflict", reason: "source_missing" }));
});
