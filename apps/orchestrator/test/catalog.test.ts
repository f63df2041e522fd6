import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import { newEnvironmentUid, newUid, type TeamUid } from "@millwright/ids";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { acceptExecution } from "./support/fake-worker.ts";

let p: CatalogPlatform;
let caller: Caller;
let teamUid: TeamUid;
const roots: string[] = [];
beforeEach(async () => {
  roots.push(mkdtempSync(join(tmpdir(), "millwright-roots-")));
  p = await catalogPlatform({ localRepositoryRoots: [roots.at(-1)!] });
  caller = aCaller();
  teamUid = caller.teams[0]!.teamUid;
});
afterEach(async () => {
  await p.close();
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

const viewerOf = (team: TeamUid): Caller =>
  aCaller({ teams: [{ teamUid: team, verbs: ["run.view", "factory.view"] }] });

describe("environments", () => {
  const create = async (
    config: Record<string, string> = { name: "Web" },
    who = caller,
    owner = { ownerType: "team", ownerUid: teamUid as string },
  ) => (await p.catalogue.createEnvironment({ environment: { ...owner, config } }, p.as(who))).environment!;
  const names = async (who: Caller, ask = {}) =>
    (await p.catalogue.listEnvironments(ask, p.as(who))).environments.map(({ config }) => config?.["name"]);

  test("are created, replaced, listed newest first or by name, and deleted", async () => {
    const first = await create({ name: "beta" });
    await create({ name: "Alpha" });
    expect(first).toMatchObject({
      uid: expect.stringMatching(/^[A-Za-z0-9]{22}$/),
      setupFailed: false,
      creatorUid: caller.principal.uid,
    });
    await p.catalogue.replaceEnvironment(
      { environment: { uid: first.uid, config: { name: "beta", docker_image: "node:24" } } },
      p.as(caller),
    );
    expect(await names(caller)).toEqual(["beta", "Alpha"]);
    expect(await names(caller, { sortBy: "name" })).toEqual(["Alpha", "beta"]);
    await p.catalogue.deleteEnvironment({ uid: first.uid }, p.as(caller));
    expect(await names(caller)).toEqual(["Alpha"]);
  });

  test("list when they were last used, and whether that run could be set up", async () => {
    const environment = await create();
    await p.run(caller, { config: { environment_id: environment.uid } });
    const worker = await p.worker();
    const execution = await acceptExecution(p, worker);
    await execution.complete("FAILED", {
      error: { code: "environment_setup_failed", message: "npm ci", retryable: false, reason: "setup_command" },
    });
    const [shown] = (await p.catalogue.listEnvironments({}, p.as(caller))).environments;
    expect(shown).toMatchObject({ setupFailed: true, lastTaskRunTimestamp: { seconds: expect.any(BigInt) } });
    await p.run(caller, { config: { environment_id: environment.uid } });
    expect((await p.catalogue.listEnvironments({}, p.as(caller))).environments[0]?.setupFailed).toBe(false);
  });

  test("belong to a team or to a user; those of others are unknown", async () => {
    const [stranger, viewer] = [aCaller(), viewerOf(teamUid)];
    const ours = await create();
    const personal = await create({ name: "Mine" }, caller, { ownerType: "user", ownerUid: caller.principal.uid });
    expect(await names(stranger)).toEqual([]);
    expect(await names(viewer)).toEqual(["Web"]);
    expect(new Set(await names(caller))).toEqual(new Set(["Mine", "Web"]));
    expect(await names(caller, { teamUid })).toEqual(["Web"]);
    expect(await names(caller, { teamUid: newUid() })).toEqual([]);
    const attempts = [
      [stranger, ours.uid],
      [stranger, newEnvironmentUid()],
      [viewer, personal.uid],
    ] as const;
    for (const [who, uid] of attempts) {
      await expect(p.catalogue.deleteEnvironment({ uid }, p.as(who))).rejects.toEqual(
        domainError({ reason: "environment_not_found" }),
      );
      await expect(p.catalogue.replaceEnvironment({ environment: { uid, config: {} } }, p.as(who))).rejects.toEqual(
        domainError({ reason: "environment_not_found" }),
      );
    }
    await expect(p.catalogue.deleteEnvironment({ uid: ours.uid }, p.as(viewer))).rejects.toEqual(
      domainError({ reason: "not_authorized" }),
    );
    await expect(create({}, stranger)).rejects.toEqual(domainError({ reason: "team_not_found" }));
    await expect(create({}, stranger, { ownerType: "user", ownerUid: caller.principal.uid })).rejects.toEqual(
      domainError({ reason: "user_not_found" }),
    );
    expect(await names(caller, { teamUid })).toEqual(["Web"]);
  });

  test("are read-only for run tokens", async () => {
    const environment = await create();
    const run = { runUid: newUid(), rootRunUid: newUid(), attempt: 1 } as NonNullable<Caller["run"]>;
    const token = { ...caller, run };
    const { uid } = environment;
    const refused = domainError({ kind: "permission_denied", reason: "not_authorized" });
    await expect(create({ name: "Mine" }, token)).rejects.toEqual(refused);
    for (const attempt of [
      p.catalogue.replaceEnvironment({ environment: { uid, config: { name: "Changed" } } }, p.as(token)),
      p.catalogue.deleteEnvironment({ uid }, p.as(token)),
      p.catalogue.createEnvironmentGrant(
        { environmentUid: uid, granteeType: "team", granteeUid: teamUid },
        p.as(token),
      ),
      p.catalogue.listEnvironmentGrants({ environmentUid: uid }, p.as(token)),
      p.catalogue.deleteEnvironmentGrant({ environmentUid: uid, uid: newUid() }, p.as(token)),
    ])
      await expect(attempt).rejects.toEqual(refused);
    expect(await names(caller)).toEqual(["Web"]);
    expect((await p.catalogue.getEnvironment({ uid }, p.as(token))).environment).toMatchObject({ uid });
  });

  test("are unchanged by a request with an invalid configuration", async () => {
    const environment = await create();
    for (const config of [{ github_repos: "x" }, { name: 5 }] as Record<string, string | number>[]) {
      await expect(
        p.catalogue.replaceEnvironment({ environment: { uid: environment.uid, config } }, p.as(caller)),
      ).rejects.toEqual(domainError({ reason: "invalid_environment" }));
    }
    expect(await names(caller)).toEqual(["Web"]);
    await expect(p.catalogue.listEnvironments({ sortBy: "age" }, p.as(caller))).rejects.toEqual(
      domainError({ reason: "invalid_sort" }),
    );
  });
});

describe("environments of others", () => {
  const uidsOf = async (who: Caller, ask = {}) =>
    (await p.catalogue.listEnvironments(ask, p.as(who))).environments.map(({ uid, access }) => [uid, access]);
  const make = async (who = caller, more = {}, owner = { ownerType: "team", ownerUid: teamUid as string }) =>
    (
      await p.catalogue.createEnvironment(
        { environment: { ...owner, config: { name: "Web", secrets: [{ name: "S" }] }, ...more } },
        p.as(who),
      )
    ).environment!.uid;
  const grant = (uid: string, granteeType: string, granteeUid: string, who = caller) =>
    p.catalogue.createEnvironmentGrant({ environmentUid: uid, granteeType, granteeUid }, p.as(who));
  const notFound = (resource: string) => domainError({ kind: "not_found", reason: `${resource}_not_found` });
  const resolve = (who: Caller, uid: string, owner = { type: "team" as const, uid: who.teams[0]!.teamUid as string }) =>
    p.catalog.resolveRun(who, { owner, config: { environment_id: uid } });

  test("can be used, but not changed, by the team or user that they are shared with, until the share is removed", async () => {
    const [friend, stranger] = [aCaller(), aCaller()];
    const uid = await make();
    const { grant: made } = await grant(uid, "user", friend.principal.uid);
    expect((await grant(uid, "user", friend.principal.uid)).grant).toEqual(made);
    expect(await uidsOf(friend)).toEqual([[uid, "granted"]]);
    expect([
      await uidsOf(caller),
      await uidsOf(stranger),
      await uidsOf(friend, { teamUid: friend.teams[0]!.teamUid }),
    ]).toEqual([[[uid, "owned"]], [], []]);
    expect((await p.catalogue.getEnvironment({ uid }, p.as(friend))).environment).toMatchObject({
      uid,
      access: "granted",
    });
    await expect(p.catalogue.replaceEnvironment({ environment: { uid, config: {} } }, p.as(friend))).rejects.toEqual(
      notFound("environment"),
    );
    await expect(p.catalogue.deleteEnvironment({ uid }, p.as(friend))).rejects.toEqual(notFound("environment"));
    await expect(grant(uid, "user", stranger.principal.uid, friend)).rejects.toEqual(notFound("environment"));
    // The owner's secrets are not shared.
    expect((await resolve(friend, uid)).frozen).toMatchObject({ environment_uid: uid, secret_names: [] });
    expect((await p.catalogue.listEnvironmentGrants({ environmentUid: uid }, p.as(caller))).grants).toEqual([made]);
    await expect(p.catalogue.listEnvironmentGrants({ environmentUid: uid }, p.as(friend))).rejects.toEqual(
      notFound("environment"),
    );
    for (const granted of [newUid(), "nonsense"])
      await expect(
        p.catalogue.deleteEnvironmentGrant({ environmentUid: uid, uid: granted }, p.as(caller)),
      ).rejects.toEqual(notFound("environment_grant"));
    await p.catalogue.deleteEnvironmentGrant({ environmentUid: uid, uid: made!.uid }, p.as(caller));
    expect(await uidsOf(friend)).toEqual([]);
    await expect(resolve(friend, uid)).rejects.toEqual(notFound("environment"));
  });

  test("can be shared with teams of the caller, and with no other", async () => {
    const both = aCaller({ principal: caller.principal, teams: [...caller.teams, ...aCaller().teams] });
    const otherTeam = both.teams[1]!.teamUid;
    const [personal, shared] = [
      await make(both, {}, { ownerType: "user", ownerUid: both.principal.uid }),
      await make(both),
    ];
    await grant(personal, "team", teamUid, both);
    await grant(shared, "team", otherTeam, both);
    expect((await resolve(caller, personal)).frozen.environment_uid).toBe(personal);
    expect(await uidsOf(aCaller({ teams: [both.teams[1]!] }))).toEqual([[shared, "granted"]]);
    for (const team of [aCaller().teams[0]!.teamUid, newUid(), "nonsense"])
      await expect(grant(shared, "team", team, both)).rejects.toEqual(notFound("team"));
    await expect(grant(shared, "team", teamUid, viewerOf(teamUid))).rejects.toEqual(
      domainError({ reason: "not_authorized" }),
    );
    await expect(grant(shared, "robot", otherTeam, both)).rejects.toEqual(domainError({ reason: "invalid_grantee" }));
  });

  test("with link sharing are found by their uid, and are listed from their first use while sharing is on", async () => {
    const [reader, runner] = [aCaller(), aCaller()];
    const uid = await make(caller, { linkSharing: true });
    expect([await uidsOf(reader), await uidsOf(runner)]).toEqual([[], []]);
    expect((await p.catalogue.getEnvironment({ uid }, p.as(reader))).environment).toMatchObject({
      uid,
      access: "link",
      linkSharing: true,
    });
    expect((await resolve(runner, uid)).frozen.environment_uid).toBe(uid);
    expect([await uidsOf(reader), await uidsOf(runner)]).toEqual([[[uid, "link"]], [[uid, "link"]]]);
    await p.catalogue.replaceEnvironment({ environment: { uid, config: { name: "Web" } } }, p.as(caller));
    expect(await uidsOf(reader)).toHaveLength(1);
    await p.catalogue.replaceEnvironment(
      { environment: { uid, config: { name: "Web" }, linkSharing: false } },
      p.as(caller),
    );
    expect([await uidsOf(reader), await uidsOf(runner)]).toEqual([[], []]);
    await expect(resolve(runner, uid)).rejects.toEqual(notFound("environment"));
    await expect(p.catalogue.getEnvironment({ uid }, p.as(reader))).rejects.toEqual(notFound("environment"));
    await grant(uid, "user", reader.principal.uid);
    expect(await uidsOf(reader)).toEqual([[uid, "granted"]]);
  });

  test("with link sharing are not listed for a team because a member read them with a key without personal rights", async () => {
    const uid = await make(caller, { linkSharing: true });
    const { personal: _, ...viewer } = viewerOf(newUid());
    expect((await p.catalogue.getEnvironment({ uid }, p.as(viewer))).environment).toMatchObject({
      uid,
      access: "link",
    });
    expect(await uidsOf(viewer)).toEqual([]);
    await p.catalogue.replaceEnvironment(
      { environment: { uid, config: { name: "Web" }, linkSharing: false } },
      p.as(caller),
    );
    await expect(p.catalogue.getEnvironment({ uid }, p.as(viewer))).rejects.toEqual(notFound("environment"));
  });

  test("show each caller the newest run that the caller may read, and nothing of the runs of others", async () => {
    const friend = aCaller();
    const uid = await make();
    await grant(uid, "user", friend.principal.uid);
    const run = await p.run(caller, { title: "Secret", config: { environment_id: uid } });
    const shown = async (who: Caller) => (await p.catalogue.getEnvironment({ uid }, p.as(who))).environment!;
    expect((await shown(caller)).lastTaskCreated).toMatchObject({ id: run.uid, title: "Secret", state: "QUEUED" });
    const { lastTaskCreated, lastTaskRunTimestamp, setupFailed } = await shown(friend);
    expect([lastTaskCreated, lastTaskRunTimestamp, setupFailed]).toEqual([undefined, undefined, false]);
  });
});

describe("a create request that is repeated with its key", () => {
  const environment = (name: string) => ({
    environment: { ownerType: "team", ownerUid: teamUid as string, config: { name } },
    idempotencyKey: "k",
  });
  const codeHost = (name: string) => ({
    codeHost: { teamUid, name, kind: "local", root: roots[0]! },
    idempotencyKey: "k",
  });
  const mismatch = domainError({ kind: "conflict", reason: "idempotency_mismatch" });

  test("creates one environment, also concurrently; another body is a conflict", async () => {
    const made = await Promise.all(
      [1, 2, 3].map(() => p.catalogue.createEnvironment(environment("Web"), p.as(caller))),
    );
    expect(made[1]).toEqual(made[0]);
    expect(made[2]).toEqual(made[0]);
    await expect(p.catalogue.createEnvironment(environment("Other"), p.as(caller))).rejects.toEqual(mismatch);
    expect((await p.catalogue.listEnvironments({}, p.as(caller))).environments.map(({ uid }) => uid)).toEqual([
      made[0]!.environment!.uid,
    ]);
  });
  test("creates one code host, and does not conflict with its own name", async () => {
    const made = await p.catalogue.createCodeHost(codeHost("here"), p.as(caller));
    expect(await p.catalogue.createCodeHost(codeHost("here"), p.as(caller))).toEqual(made);
    await expect(p.catalogue.createCodeHost(codeHost("there"), p.as(caller))).rejects.toEqual(mismatch);
    await expect(
      p.catalogue.createCodeHost({ ...codeHost("here"), idempotencyKey: "other" }, p.as(caller)),
    ).rejects.toEqual(domainError({ reason: "name_taken" }));
    expect(
      await p.catalogue.createCodeHost({ ...codeHost("free"), idempotencyKey: "other" }, p.as(caller)),
    ).toMatchObject({ codeHost: { name: "free" } });
  });
  test("returns the first code host after its secret was deleted, to a caller that still has the permissions", async () => {
    p.known.secrets.set("TOKEN", "t0ken");
    const connect = (name: string, who = caller) =>
      p.catalogue.createCodeHost(
        { codeHost: { teamUid, name, kind: "github", secretName: "TOKEN" }, idempotencyKey: "k" },
        p.as(who),
      );
    const made = await connect("GitHub");
    p.known.secrets.delete("TOKEN");
    expect(await connect("GitHub")).toEqual(made);
    await expect(connect("Other")).rejects.toEqual(mismatch);
    const scoped: Caller = { ...caller, teams: [{ teamUid, verbs: ["factory.view", "factory.manage"] }] };
    await expect(connect("GitHub", scoped)).rejects.toEqual(domainError({ kind: "permission_denied" }));
  });
});

describe("code hosts", () => {
  const connect = async (over: Record<string, unknown> = {}, who = caller) =>
    (
      await p.catalogue.createCodeHost(
        { codeHost: { teamUid, name: "here", kind: "local", root: roots[0]!, ...over } },
        p.as(who),
      )
    ).codeHost!;
  const names = async (who: Caller, ask = {}) =>
    (await p.catalogue.listCodeHosts(ask, p.as(who))).codeHosts.map(({ name }) => name);

  test("are connected by name, once per team", async () => {
    const host = await connect({ owners: ["acme"] });
    expect(host).toMatchObject({ kind: "local", root: roots[0], owners: ["acme"], teamUid });
    await expect(connect()).rejects.toEqual(domainError({ kind: "conflict", reason: "name_taken" }));
    p.known.secrets.set("TOKEN", "t0ken");
    await connect({ name: "GitHub", kind: "github", root: "", secretName: "TOKEN" });
    expect(await connect({ name: "GitLab", kind: "gitlab", root: "" })).toMatchObject({
      kind: "gitlab",
      baseUrl: "https://gitlab.com/api/v4",
    });
    expect(await names(caller)).toEqual(["GitHub", "GitLab", "here"]);
    await p.catalogue.deleteCodeHost({ uid: host.uid }, p.as(caller));
    expect(await names(caller)).toEqual(["GitHub", "GitLab"]);
  });

  test("are refused with a secret that the team does not have", async () => {
    await expect(connect({ name: "GitHub", kind: "github", root: "", secretName: "NOWHERE" })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "secret_missing" }),
    );
    expect(await names(caller)).toEqual([]);
  });

  test("that name a secret require the permission to manage secrets, because the secret is sent to their address", async () => {
    p.known.secrets.set("TOKEN", "t0ken");
    const scoped = aCaller({ teams: [{ teamUid, verbs: ["factory.view", "factory.manage"] }] });
    const named = { name: "GitHub", kind: "github", root: "", baseUrl: "https://git.example.com/api/v3" };
    await expect(connect({ ...named, secretName: "TOKEN" }, scoped)).rejects.toEqual(
      domainError({ kind: "permission_denied" }),
    );
    expect(await connect(named, scoped)).toMatchObject({ kind: "github" });
  });

  test("outside the operator's directories are refused", async () => {
    await expect(connect({ root: "/etc" })).rejects.toEqual(domainError({ reason: "code_host_root_not_allowed" }));
    expect(await names(caller)).toEqual([]);
  });

  test.each([
    "http://127.0.0.1/api/v3",
    "http://localhost:3000",
    "https://[::1]",
    "http://169.254.169.254",
    "https://10.1.2.3/api",
  ])("at %s are inside the platform's network, and are refused", async (baseUrl) => {
    await expect(connect({ kind: "github", root: "", baseUrl })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "internal_address_refused" }),
    );
    expect(await names(caller)).toEqual([]);
  });

  test("belong to one team, and require factory.manage", async () => {
    const host = await connect();
    const [stranger, viewer] = [aCaller(), viewerOf(teamUid)];
    expect([await names(stranger), await names(viewer), await names(caller, { teamUid: newUid() })]).toEqual([
      [],
      ["here"],
      [],
    ]);
    for (const uid of [host.uid, newUid(), "nonsense"])
      await expect(p.catalogue.deleteCodeHost({ uid }, p.as(stranger))).rejects.toEqual(
        domainError({ reason: "code_host_not_found" }),
      );
    await expect(p.catalogue.deleteCodeHost({ uid: host.uid }, p.as(viewer))).rejects.toEqual(
      domainError({ reason: "not_authorized" }),
    );
    await expect(connect({ name: "x" }, stranger)).rejects.toEqual(domainError({ reason: "team_not_found" }));
    expect(await names(caller)).toEqual(["here"]);
  });
});

test("models: scripted is the default and costs nothing; the others are disabled with a reason; an unknown price is absent", async () => {
  const { defaultModelId, models } = await p.catalogue.listModels({}, p.as(caller));
  expect(defaultModelId).toBe("scripted");
  expect(models[0]).toMatchObject({
    id: "scripted",
    provider: "UNKNOWN",
    disabled: false,
    cost: { inputPerMillionTokens: 0, outputPerMillionTokens: 0 },
  });
  for (const model of models.slice(1))
    expect(model).toMatchObject({
      disabled: true,
      disableReason: "ADMIN_DISABLED",
      disabledMessage: expect.stringContaining("is configured"),
    });
  const costOf = (id: string) => models.find((model) => model.id === id)?.cost;
  expect(costOf("claude-sonnet-4-5")).toMatchObject({
    inputPerMillionTokens: 3,
    outputPerMillionTokens: 15,
    inputCacheReadPerMillionTokens: 0.3,
    inputCacheWritePerMillionTokens: 3.75,
  });
  expect(costOf("gemini-3.8-flash")).toBeUndefined();
});

describe("connected workers", () => {
  const shown = async (who: Caller, ask = {}) =>
    (await p.catalogue.listWorkers(ask, p.as(who))).workers.map(({ workerHost, connectionCount }) => [
      workerHost,
      connectionCount,
    ]);

  test("are those of the caller's teams, by host; the platform's own are listed for no team", async () => {
    for (const host of ["b", "a", "b"]) await p.worker({ teamUid, host });
    await p.worker({ host: "platform" });
    expect(await shown(caller)).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
    expect(await shown(caller, { teamUid })).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
    expect(await shown(caller, { teamUid: newUid() })).toEqual([]);
    expect(await shown(aCaller())).toEqual([]);
  });

  test("are removed 45 s after their last heartbeat", async () => {
    await p.worker({ teamUid, host: "a" });
    await p.database.sql.query("UPDATE worker_sessions SET last_seen_at = last_seen_at - interval '44 seconds'");
    expect(await shown(caller)).toEqual([["a", 1]]);
    await p.database.sql.query("UPDATE worker_sessions SET last_seen_at = last_seen_at - interval '2 seconds'");
    expect(await shown(caller)).toEqual([]);
  });
});
