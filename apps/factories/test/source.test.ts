import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { VERBS } from "@millwright/caller";
import { runnerUidOf } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { aCaller, domainError, eventually } from "@millwright/testing";
import { MEMBER, OWNER, startWorld, TEAM, VIEWER, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

let w: World;
let factoryUid: string;
beforeAll(async () => {
  w = await startWorld();
});
beforeEach(async () => {
  await w.reset();
  factoryUid = (await w.aFactory({ name: "Live one", alias: "live" })).uid;
});
afterAll(() => w.stop());

const put = (files = aTree()) => w.factories.putSource({ factoryUid, source: { kind: "files", files } }, call(OWNER));
const apply = () => w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 30_000 }));
const getSource = async () => (await w.factories.getSource({ factoryUid }, call(VIEWER))).source;
const getFactory = async () => (await w.factories.getFactory({ uid: factoryUid }, call(OWNER))).factory;
const codes = (error: unknown) =>
  (error as DomainError).details.map(
    (detail) => detail as { path: string; line: number; column: number; code: string },
  );

describe("registering a source", () => {
  test("stores it without applying it", async () => {
    expect(await getSource()).toMatchObject({ kind: "none", state: "NONE", activeVersion: 0n });
    const { source } = await put();
    expect(source).toMatchObject({ kind: "files", state: "NONE", activeVersion: 0n });
    expect(source?.files).toHaveLength(5);
    expect(await getSource()).toEqual(source);
    expect((await getFactory())?.management).toBe("live");
  });

  test.each([
    ["of no kind", { kind: "ftp" }, "invalid_source"],
    ["with a path that walks up", { kind: "files", files: [{ path: "../x", content: "" }] }, "invalid_source"],
    [
      "with one path twice",
      {
        kind: "files",
        files: [
          { path: "a", content: "" },
          { path: "a", content: "" },
        ],
      },
      "invalid_source",
    ],
    [
      "with too large a file",
      { kind: "files", files: [{ path: "a", content: "x".repeat(2 * 1024 * 1024 + 1) }] },
      "source_too_large",
    ],
    [
      "with too many files",
      { kind: "files", files: Array.from({ length: 2_001 }, (_, n) => ({ path: `f${n}`, content: "" })) },
      "source_too_large",
    ],
    ["over plain http", { kind: "git", repositoryUrl: "http://host/r.git" }, "invalid_source"],
    ["over ssh", { kind: "git", repositoryUrl: "ssh://host/r.git" }, "invalid_source"],
    ["over git's ext transport", { kind: "git", repositoryUrl: "ext::sh -c true" }, "invalid_source"],
    ["with credentials", { kind: "git", repositoryUrl: "https://user:token@host/r.git" }, "invalid_source"],
    [
      "with an option as branch",
      { kind: "git", repositoryUrl: "https://host/r.git", branch: "--upload-pack=x" },
      "invalid_source",
    ],
    [
      "with a directory outside",
      { kind: "git", repositoryUrl: "https://host/r.git", directory: "a/../../b" },
      "invalid_source",
    ],
    ["on this machine's disk", { kind: "git", repositoryUrl: "/etc" }, "repository_not_allowed"],
  ])("rejects one %s", async (_what, source, reason) => {
    await expect(w.factories.putSource({ factoryUid, source }, call(OWNER))).rejects.toEqual(domainError({ reason }));
    expect(await getSource()).toMatchObject({ kind: "none" });
  });
});

describe("checking", () => {
  const check = (request: { files?: { path: string; content: string }[]; plan?: boolean } = {}) =>
    w.factories.checkSource({ factoryUid, ...request }, call(VIEWER));

  test("needs something to check", async () => {
    await expect(check()).rejects.toEqual(
      domainError({ kind: "conflict", reason: "source_missing", retryable: false }),
    );
  });

  test("names every problem at its place, and changes nothing", async () => {
    await put();
    const before = await getSource();
    const { valid, diagnostics, plan } = await check({
      files: aTree({ "agents/hand/agent.md": "---\nagentType: BOSS\ncolour: red\n---\n" }),
      plan: true,
    });
    expect({ valid, plan }).toEqual({ valid: false, plan: [] });
    expect(diagnostics.map(({ path, line, column, code }) => [path, line, column, code])).toEqual([
      ["agents/hand/agent.md", 1, 1, "FF_MISSING_FIELD"],
      ["agents/hand/agent.md", 2, 12, "FF_INVALID_VALUE"],
      ["agents/hand/agent.md", 3, 1, "FF_UNKNOWN_FIELD"],
    ]);
    expect(await getSource()).toEqual(before);
    expect(w.identity.owner.stages + w.orchestrator.owner.stages).toBe(0);
  });

  test("reports problems of files and of other services together, for validate, plan and apply", async () => {
    w.orchestrator.owner.diagnostics = [
      {
        path: "agents/hand/agent.md",
        keys: ["model"],
        code: "FF_INVALID_REFERENCE",
        message: "No such model.",
        severity: "error",
      },
    ];
    w.identity.owner.diagnostics = [
      {
        path: "factory.yaml",
        keys: ["secrets", "NPM"],
        code: "FF_INVALID_REFERENCE",
        message: "No such secret.",
        severity: "error",
      },
    ];
    const files = aTree({ "agents/hand/agent.md": "---\ncolour: red\nmodel: nowhere\n---\nDo.\n" });
    const expected = [
      ["agents/hand/agent.md", 2, 1, "FF_UNKNOWN_FIELD"],
      ["agents/hand/agent.md", 3, 8, "FF_INVALID_REFERENCE"],
      ["factory.yaml", 7, 11, "FF_INVALID_REFERENCE"],
    ];
    const places = (all: readonly { path: string; line: number; column: number; code: string }[]) =>
      all.map(({ path, line, column, code }) => [path, line, column, code]);
    for (const plan of [false, true]) {
      const checked = await check({ files, plan });
      expect([checked.valid, checked.plan, places(checked.diagnostics)]).toEqual([false, [], expected]);
    }
    await put(files);
    expect(places(codes(await apply().catch((thrown: unknown) => thrown)))).toEqual(expected);
  });

  test("validate reports problems that only other services can detect", async () => {
    w.identity.owner.diagnostics = [
      {
        path: "factory.yaml",
        keys: ["secrets", "NPM"],
        code: "FF_INVALID_REFERENCE",
        message: "No such secret.",
        severity: "error",
      },
    ];
    expect(await check({ files: aTree() })).toMatchObject({
      valid: false,
      plan: [],
      diagnostics: [{ code: "FF_INVALID_REFERENCE" }],
    });
  });

  test("plans with every owner, deletions included", async () => {
    await put();
    await apply();
    const files = aTree({ "agents/hand/agent.md": undefined, "skills/tests/SKILL.md": undefined });
    const { valid, plan } = await check({ files, plan: true });
    expect(valid).toBe(true);
    expect(plan.map(({ kind, name, action }) => `${action} ${kind} ${name}`)).toEqual([
      "create agent foreman",
      "delete agent hand",
      "unchanged factory factory.yaml",
      "create runner box",
      "delete skill skills/tests/SKILL.md",
    ]);
    expect((await check()).revision).toBe((await getSource())?.activeRevision);
  });

  test("reports the position of an alias that another factory has", async () => {
    await w.aFactory({ alias: "MENDED" });
    const { diagnostics } = await check({ files: aTree() });
    expect(diagnostics).toMatchObject([{ path: "factory.yaml", line: 4, column: 8, code: "FF_DUPLICATE_NAME" }]);
  });
});

describe("applying", () => {
  test("stages at every owner, commits, activates, and the record shows the definition", async () => {
    await put();
    const { source, plan } = await apply();
    expect(source).toMatchObject({ state: "APPLIED", activeVersion: 1n, diagnostics: [] });
    expect(source?.activeRevision).toMatch(/^[0-9a-f]{64}$/);
    expect(plan.map(({ kind, action }) => `${action} ${kind}`)).toEqual([
      "create agent",
      "create agent",
      "update factory",
      "create runner",
    ]);
    expect([w.identity.owner.active.get(factoryUid), w.orchestrator.owner.active.get(factoryUid)]).toEqual([1, 1]);
    expect(await getFactory()).toMatchObject({
      name: "Mended shop",
      description: "From files",
      alias: "mended",
      codeForge: "GITHUB",
      repositories: [{ owner: "acme", repo: "shop" }],
      defaultModel: "auto",
      management: "service_files",
      definitionVersion: 1n,
      agentDefaults: {
        default_runner_uid: runnerUidOf(factoryUid, "box"),
        mcp_servers: {},
        secrets: [{ name: "NPM" }],
        worker_host: "",
      },
      foremanAgentUid: w.identity.foremen.get(factoryUid)?.agentUid,
    });
    expect((await w.eventTypes()).slice(-2)).toEqual(["factory.updated", "definition.activated"]);
    const [event] = await w.rows(
      "SELECT payload, actor_uid FROM stream.event_log WHERE type LIKE '%definition%' UNION ALL SELECT payload, actor_uid FROM stream.event_pending WHERE type LIKE '%definition%'",
    );
    expect(event).toEqual({ payload: { factory_uid: factoryUid, version: 1 }, actor_uid: OWNER.principal.uid });
  });

  test("needs a source, and the right to apply", async () => {
    await expect(apply()).rejects.toEqual(domainError({ kind: "conflict", reason: "source_missing" }));
    await put();
    await expect(w.factories.applySource({ factoryUid }, call(MEMBER))).rejects.toEqual(
      domainError({ reason: "not_authorized" }),
    );
  });

  test("the same files again is the same application", async () => {
    await put();
    const first = await apply();
    await put(aTree().toReversed());
    expect(await apply()).toEqual({ ...first, source: { ...first.source, files: expect.any(Array) } });
    expect(w.identity.owner.stages).toBe(1);
  });

  test("concurrently, on several replicas, is one application with one answer", async () => {
    await put();
    const clients = [w.factories, w.clientOf(await w.replica())];
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        clients[n % 2]!.applySource({ factoryUid }, call(OWNER, { timeoutMs: 30_000 })),
      ),
    );
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect([w.identity.owner.stages, w.orchestrator.owner.stages]).toEqual([1, 1]);
    expect((await w.eventTypes()).filter((type) => type === "definition.activated")).toHaveLength(1);
  });

  test("a factory that files define is changed by files only", async () => {
    await put();
    await apply();
    const changing = w.factories.updateFactory(
      { uid: factoryUid, factory: { name: "By hand" }, updateMask: { paths: ["name"] } },
      call(OWNER),
    );
    await expect(changing).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "managed_by_files" }));
  });

  test("warnings of the active definition reflect the current state, not that of the apply", async () => {
    const noHost = {
      path: "factory.yaml",
      keys: ["agentDefaults", "runner"],
      code: "FF_INVALID_REFERENCE",
      message: "No host.",
      severity: "warning",
    };
    w.orchestrator.owner.diagnostics = [noHost];
    await put();
    expect((await apply()).source?.diagnostics).toMatchObject([
      { path: "factory.yaml", line: 10, column: 11, message: "No host." },
    ]);
    w.orchestrator.owner.diagnostics = [];
    expect((await getSource())?.diagnostics).toEqual([]);
    w.webhookIngress.owner.diagnostics = [{ ...noHost, message: "No webhook." }];
    expect((await getSource())?.diagnostics).toMatchObject([{ message: "No webhook.", severity: "warning" }]);
    w.webhookIngress.owner.failure = new DomainError({ kind: "unavailable", reason: "away", message: "Away." });
    expect(await getSource()).toMatchObject({ state: "APPLIED", diagnostics: [] });
    w.webhookIngress.owner.reset();
    expect(await w.rows("SELECT 1 FROM definition_sources WHERE diagnostics <> '[]'")).toEqual([]);
  });

  test("warnings do not prevent the apply and remain readable", async () => {
    await put(
      aTree({
        "automations/chat/automation.md": "---\ntriggers: [{ provider: slack, event: app_mention }]\n---\nAnswer.\n",
      }),
    );
    w.orchestrator.owner.diagnostics = [
      { path: "factory.yaml", keys: [], code: "FF_INVALID_REFERENCE", message: "No host.", severity: "warning" },
    ];
    expect((await apply()).source?.diagnostics).toMatchObject([
      { path: "automations/chat/automation.md", line: 2, column: 24, code: "FF_NOT_SERVED", severity: "warning" },
      { path: "factory.yaml", line: 1, column: 1, severity: "warning" },
    ]);
  });
});

describe("a failed apply leaves the active version", () => {
  beforeEach(async () => {
    await put();
    await apply();
  });
  const unchanged = async () => {
    expect(await getFactory()).toMatchObject({ name: "Mended shop", definitionVersion: 1n });
    expect([w.identity.owner.active.get(factoryUid), w.orchestrator.owner.active.get(factoryUid)]).toEqual([1, 1]);
    await w.service.work.drain();
    expect(await w.rows("SELECT version FROM definition_versions WHERE state = 'CURRENT'")).toEqual([{ version: 1 }]);
    for (const owner of [w.identity.owner, w.orchestrator.owner])
      expect([...owner.staged.keys()]).toEqual([`${factoryUid}/1`]);
  };
  const broken = aTree({ "factory.yaml": "schemaVersion: v1alpha1\nname: New\n", "agents/hand/agent.md": "x" });

  test("when the files are wrong: all diagnostics are in the answer and in the source", async () => {
    await put(broken);
    const error = await apply().catch((thrown: unknown) => thrown);
    expect(error).toEqual(domainError({ kind: "invalid_argument", reason: "definition_invalid" }));
    expect(codes(error).map(({ path, code }) => `${path} ${code}`)).toEqual([
      "agents/hand/agent.md FF_PARSE_ERROR",
      "factory.yaml FF_MISSING_FIELD",
      "factory.yaml FF_MISSING_FIELD",
    ]);
    expect(await getSource()).toMatchObject({ state: "FAILED", activeVersion: 1n, diagnostics: codes(error) });
    await unchanged();
  });

  test("when an owner finds something wrong", async () => {
    await put(aTree({ "runners/big.yaml": "platform: { linux: { dockerImage: x } }\n" }));
    w.identity.owner.diagnostics = [
      {
        path: "runners/big.yaml",
        keys: ["platform", "linux"],
        code: "FF_INVALID_REFERENCE",
        message: "No such image.",
        severity: "error",
      },
    ];
    const error = await apply().catch((thrown: unknown) => thrown);
    expect(codes(error)).toEqual([
      {
        path: "runners/big.yaml",
        line: 1,
        column: 20,
        code: "FF_INVALID_REFERENCE",
        message: "No such image.",
        severity: "error",
      },
    ]);
    w.identity.owner.diagnostics = [];
    await unchanged();
  });

  test.each([
    ["webhook.manage", { "webhooks/ci.yaml": "secretName: CI\n" }],
    ["agent.manage", { "agents/third/agent.md": "---\n---\nThird.\n" }],
    [
      "factory.manage",
      {
        "automations/nightly/automation.md":
          "---\ntriggers: [{provider: schedule, event: cron_fired, schedule: {cron: '@daily'}}]\n---\nGo.\n",
      },
    ],
  ] as const)("when the caller lacks %s and the plan touches what needs it", async (missing, files) => {
    await put(aTree(files));
    const applier = aCaller({ teams: [{ teamUid: TEAM, verbs: VERBS.filter((verb) => verb !== missing) }] });
    await expect(w.factories.applySource({ factoryUid }, call(applier))).rejects.toMatchObject({
      reason: "not_authorized",
      metadata: { verb: missing },
    });
    await unchanged();
  });

  test("when the caller may not change what the plan touches", async () => {
    await put(aTree({ "agents/third/agent.md": "---\n---\nThird.\n" }));
    const applier = aCaller({ teams: [{ teamUid: TEAM, verbs: ["factory.view", "factory.manage", "source.apply"] }] });
    await expect(w.factories.applySource({ factoryUid }, call(applier))).rejects.toMatchObject({
      reason: "not_authorized",
      metadata: { verb: "agent.manage" },
    });
    await unchanged();
  });

  test.each([
    ["is away", new Error("boom"), { kind: "internal" }, "FAILED"],
    [
      "refuses who asks",
      new DomainError({ kind: "permission_denied", reason: "not_authorized", message: "agent.manage" }),
      { kind: "permission_denied", reason: "not_authorized" },
      "APPLIED",
    ],
  ])("when an owner %s", async (_what, failure, expected, state) => {
    await put(aTree({ "runners/big.yaml": "platform: { linux: { dockerImage: x } }\n" }));
    w.orchestrator.owner.failure = failure;
    await expect(apply()).rejects.toEqual(domainError(expected));
    expect(await getSource()).toMatchObject({ state, activeVersion: 1n, diagnostics: [] });
    w.orchestrator.owner.failure = undefined;
    await unchanged();
  });

  test("if the alias is taken just before the commit", async () => {
    await put(aTree({ "factory.yaml": aTree()[0]!.content.replace("alias: mended", "alias: late") }));
    w.identity.owner.onStage = async () =>
      void (await w.rows("UPDATE factories SET alias = 'LATE' WHERE uid = $1", [rivalUid]));
    const rivalUid = (await w.aFactory({ name: "Rival" })).uid;
    const error = await apply().catch((thrown: unknown) => thrown);
    expect(codes(error)).toMatchObject([{ path: "factory.yaml", line: 4, column: 8, code: "FF_DUPLICATE_NAME" }]);
    await unchanged();
  });

  test("until the good files are registered again", async () => {
    await put(broken);
    await apply().catch(() => {});
    await put();
    expect((await apply()).source).toMatchObject({ state: "APPLIED", activeVersion: 1n, diagnostics: [] });
    expect(w.identity.owner.stages).toBe(1);
  });
});

describe("an apply that dies", () => {
  test("between stage and commit is taken over, and its staged version is discarded", async () => {
    await put();
    w.identity.owner.onStage = async () =>
      void (await w.rows(
        "UPDATE definition_sources SET apply_lease_until = now() - interval '1 s', apply_lease_uid = gen_random_uuid()",
      ));
    await expect(apply()).rejects.toEqual(
      domainError({ kind: "conflict", reason: "apply_in_progress", retryable: true }),
    );
    w.identity.owner.onStage = async () => {};
    expect((await apply()).source).toMatchObject({ state: "APPLIED", activeVersion: 2n });
    await w.service.work.drain();
    expect(w.identity.owner.dropped).toEqual(["1"]);
    expect([...w.identity.owner.staged.keys()]).toEqual([`${factoryUid}/2`]);
  });

  test("is detected within seconds: a concurrent apply waits, and succeeds", async () => {
    await put();
    await w.rows(
      "UPDATE definition_sources SET apply_lease_until = now() + interval '1 s', apply_lease_uid = gen_random_uuid()",
    );
    expect((await apply()).source).toMatchObject({ state: "APPLIED", activeVersion: 1n });
  });

  test("after the commit is completed by its stored work item", async () => {
    let open: () => void = () => {};
    w.orchestrator.owner.gate = new Promise((resolve) => (open = resolve));
    const late = await w.replica({ activationWaitMs: 20 });
    await put();
    const { source } = await applyAt(late);
    expect(source).toMatchObject({ state: "APPLYING", activeVersion: 1n });
    expect((await getFactory())?.foremanAgentUid).toBeUndefined();
    open();
    late.work.start();
    await eventually(async () => (await getSource())?.state === "APPLIED");
    expect((await getFactory())?.foremanAgentUid).toBe(w.identity.foremen.get(factoryUid)?.agentUid);
  });

  test("activates scoring, whose part names agents, only once the other owners serve the version", async () => {
    let open: () => void = () => {};
    w.identity.owner.gate = new Promise((resolve) => (open = resolve));
    const late = await w.replica({ activationWaitMs: 20 });
    await put();
    await applyAt(late);
    expect([w.orchestrator.owner.active.get(factoryUid), w.scoring.owner.active.get(factoryUid)]).toEqual([
      1,
      undefined,
    ]);
    open();
    late.work.start();
    await eventually(async () => w.scoring.owner.active.get(factoryUid) === 1);
    await eventually(async () => (await getSource())?.state === "APPLIED");
  });

  const applyAt = (replica: Parameters<World["clientOf"]>[0]) =>
    w.clientOf(replica).applySource({ factoryUid }, call(OWNER));
});
