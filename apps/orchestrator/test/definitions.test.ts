import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import type { StoredEvent } from "@millwright/events";
import { newUid, runnerUidOf, type FactoryUid } from "@millwright/ids";
import { DEFINITION_ACTIVATED } from "../src/catalog/events/on-definition-activated.ts";
import { definitionStore } from "../src/catalog/store/definition-store.ts";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";

let p: CatalogPlatform;
let caller: Caller;
let factoryUid: FactoryUid;
beforeEach(async () => {
  p = await catalogPlatform();
  caller = aCaller();
  factoryUid = newUid<FactoryUid>();
});
afterEach(() => p.close());

const service = () => p.as(serviceCaller("factories", newUid()));
const aDefinition = (over: Record<string, unknown> = {}) => ({
  factory: { name: "f", repositories: [{ owner: "acme", repo: "app" }], agent_defaults: { model: "auto" } },
  agents: [],
  runners: [{ name: "small", setup_commands: ["npm ci"], docker_image: "node:24", os: "linux", arch: "x86_64" }],
  skills: [{ name: "s", path: "skills/s/SKILL.md", description: "d", body: "text" }],
  ...over,
});
type StageAsk = { version: number; definition?: Record<string, unknown>; dryRun?: boolean };
const stage = ({ version, definition = aDefinition(), dryRun = false }: StageAsk) =>
  p.definitions.stageDefinition(
    {
      factoryUid,
      teamUid: caller.teams[0]!.teamUid,
      version: BigInt(version),
      definition: definition as never,
      dryRun,
    },
    service(),
  );
const activate = async (version: number) =>
  Number((await p.definitions.activateDefinition({ factoryUid, version: BigInt(version) }, service())).activeVersion);
const find = (version: number) => definitionStore(p.database).find(factoryUid, version);
const actions = (plan: readonly { kind: string; name: string; action: string }[]) =>
  plan.map(({ kind, name, action }) => `${action} ${kind} ${name}`);

describe("staging", () => {
  test("is inert until activated, and converges when repeated", async () => {
    expect(actions((await stage({ version: 1 })).plan)).toEqual([
      "create runner small",
      "create skill skills/s/SKILL.md",
    ]);
    await stage({ version: 1 });
    expect(await find(0)).toBeUndefined();
    expect(await activate(1)).toBe(1);
    expect(await find(0)).toMatchObject({
      version: 1,
      repositories: [{ owner: "acme", repo: "app" }],
      runners: [{ name: "small", setupCommands: ["npm ci"] }],
      skills: [{ body: "text" }],
    });
    expect(actions((await stage({ version: 2 })).plan)).toEqual([
      "unchanged runner small",
      "unchanged skill skills/s/SKILL.md",
    ]);
  });

  test("as a dry run stores nothing", async () => {
    expect((await stage({ version: 1, dryRun: true })).plan).toHaveLength(2);
    await expect(activate(1)).rejects.toEqual(domainError({ reason: "definition_not_staged" }));
  });

  test("reports unknown models and environments as errors and stores nothing; later additions are warnings", async () => {
    const wrong = aDefinition({
      agents: [
        { name: "a", model: "no-such-model", environment_id: "x".repeat(22), worker_host: "nowhere" },
        { name: "b", model: "claude-sonnet-4-5" },
      ],
    });
    const { diagnostics } = await stage({ version: 1, definition: wrong });
    expect(diagnostics.map(({ path, keys, severity, code }) => [path, keys.join("."), severity, code])).toEqual([
      ["agents/a/agent.md", "model", "error", "FF_INVALID_REFERENCE"],
      ["agents/b/agent.md", "model", "warning", "FF_INVALID_REFERENCE"],
      ["agents/a/agent.md", "environmentId", "error", "FF_INVALID_REFERENCE"],
      ["agents/a/agent.md", "workerHost", "warning", "FF_INVALID_REFERENCE"],
      ["factory.yaml", "repositories.0", "warning", "FF_INVALID_REFERENCE"],
    ]);
    expect(await find(1)).toBeUndefined();
  });

  test("reports a runner that neither the definition nor the factory has", async () => {
    await stage({ version: 1 });
    await activate(1);
    const automations = [
      { name: "a", runner: "small" },
      { name: "b", runner: "nowhere" },
    ];
    const { diagnostics } = await stage({
      version: 2,
      dryRun: true,
      definition: aDefinition({ runners: [], automations }),
    });
    expect(
      diagnostics
        .filter(({ severity }) => severity === "error")
        .map(({ path, keys, message }) => [path, keys, message]),
    ).toEqual([["automations/b/automation.md", ["runner"], 'runner: the factory has no runner "nowhere".']]);
  });

  test("is permitted to the owner of definitions only", async () => {
    const ask = { factoryUid, teamUid: caller.teams[0]!.teamUid, version: 1n, definition: aDefinition() as never };
    await expect(p.definitionsByGateway.stageDefinition(ask, p.as(serviceCaller("gateway", newUid())))).rejects.toEqual(
      domainError({ reason: "service_not_allowed" }),
    );
  });
});

describe("activating", () => {
  test("only moves forward", async () => {
    for (const version of [1, 2, 3]) await stage({ version });
    expect([await activate(2), await activate(1), await activate(3), await activate(2)]).toEqual([2, 2, 3, 3]);
    expect((await find(0))?.version).toBe(3);
  });

  test("twice concurrently has one effect", async () => {
    await stage({ version: 1 });
    expect(await Promise.all([activate(1), activate(1), activate(1)])).toEqual([1, 1, 1]);
  });

  test("retains the previous version for dispatches that name it; an unknown version means the active one", async () => {
    for (const version of [1, 2, 3]) {
      await stage({ version });
      await activate(version);
    }
    expect([
      (await find(3))?.version,
      (await find(2))?.version,
      (await find(1))?.version,
      (await find(9))?.version,
    ]).toEqual([3, 2, 3, 3]);
  });

  test("by the event does the same, and fails if the version was never staged", async () => {
    await stage({ version: 1 });
    const event = (version: number) => ({ payload: { factory_uid: factoryUid, version } }) as unknown as StoredEvent;
    const handleActivated = (version: number) =>
      p.database.transaction((tx) => p.catalog.eventHandlers[DEFINITION_ACTIVATED](tx, event(version)));
    await handleActivated(1);
    await handleActivated(1);
    expect((await find(0))?.version).toBe(1);
    await expect(handleActivated(2)).rejects.toEqual(domainError({ reason: "definition_not_staged" }));
  });

  test("names a runner by the uid derived from its factory and name, and also finds it by the uid of earlier releases", async () => {
    await stage({ version: 1 });
    await activate(1);
    const [{ uid, formerUid } = { uid: "", formerUid: "" }] = (await find(0))!.runners;
    expect([uid, uid === formerUid]).toEqual([runnerUidOf(factoryUid, "small"), false]);
    const store = definitionStore(p.database);
    const found = (asked: string, team = caller.teams[0]!.teamUid) => store.findRunner(team, asked);
    expect([(await found(uid))?.name, (await found(uid.toUpperCase()))?.name, (await found(formerUid))?.name]).toEqual([
      "small",
      "small",
      "small",
    ]);
    expect([await found(newUid()), await found("nonsense"), await found(uid, newUid())]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("reuses a runner's uid as long as its name exists", async () => {
    await stage({ version: 1 });
    await activate(1);
    const before = (await find(0))!.runners[0]!;
    await stage({
      version: 2,
      definition: aDefinition({
        runners: [
          { name: "small", docker_image: "node:25" },
          { name: "big", docker_image: "x" },
        ],
      }),
    });
    await stage({
      version: 2,
      definition: aDefinition({
        runners: [
          { name: "small", docker_image: "node:25" },
          { name: "big", docker_image: "x" },
        ],
      }),
    });
    await activate(2);
    const after = (await find(0))!.runners;
    expect(after.find(({ name }) => name === "small")).toMatchObject({ uid: before.uid, dockerImage: "node:25" });
    expect(after.find(({ name }) => name === "big")?.uid).not.toBe(before.uid);
  });
});

test("lists a team's active runners for the scoring service, with the settings that affect results", async () => {
  const listed = async (teamUid: string = caller.teams[0]!.teamUid) =>
    (await p.evidence.listRunners({ teamUid }, p.as(serviceCaller("scoring", newUid())))).runners;
  await stage({ version: 1 });
  expect(await listed()).toEqual([]);
  await activate(1);
  const content = { docker_image: "node:24", setup_commands: ["npm ci"], os: "linux", arch: "x86_64" };
  expect(await listed()).toMatchObject([{ uid: runnerUidOf(factoryUid, "small"), factoryUid, name: "small", content }]);
  expect(await listed(newUid())).toEqual([]);
  await expect(listed("no team")).rejects.toEqual(domainError({ kind: "not_found" }));
  await expect(
    p.evidenceByGateway.listRunners({ teamUid: newUid() }, p.as(serviceCaller("gateway", newUid()))),
  ).rejects.toEqual(domainError({ reason: "service_not_allowed" }));
});

test("drops a staged version, never the active one", async () => {
  await stage({ version: 1 });
  await stage({ version: 2 });
  await activate(1);
  for (const version of [1n, 2n, 7n]) await p.definitions.discardDefinition({ factoryUid, version }, service());
  expect((await find(0))?.version).toBe(1);
  await expect(activate(2)).rejects.toEqual(domainError({ reason: "definition_not_staged" }));
});

test("refuses a definition of another format, and a malformed uid", async () => {
  await expect(stage({ version: 1, definition: { runners: {} } })).rejects.toEqual(
    domainError({ reason: "definition_malformed" }),
  );
  await expect(p.definitions.discardDefinition({ factoryUid: "x", version: 1n }, service())).rejects.toEqual(
    domainError({ reason: "definition_malformed" }),
  );
});
