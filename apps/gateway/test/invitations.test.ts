import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

let g: TestGateway;
let [ada, bob]: { uid: string; key: string; email: string }[] = [];
const call = (method: string, path: string, body: unknown, key: string) =>
  g.api.call(method, `/api/v1${path}`, { body, key });
const whoami = async (key: string) => (await call("GET", "/whoami", undefined, key)).body;
const teamsOf = async (key: string): Promise<string[]> =>
  (await whoami(key)).teams.map(({ uid }: { uid: string }) => uid).toSorted();
const invite = (email: string, role = "member", by = ada!) =>
  call("POST", `/team/${by.uid}/invitations`, { email, role }, by.key);

/** Creates a team and returns its owner, with the key that was shown to the platform administrator. */
const aPerson = async (name: string) => ({ ...(await g.newTeam(name)), email: `${name}@example.com` });

/** Creates two people, each the owner of a team with the key that was shown to the platform administrator. */
beforeAll(async () => {
  g = await openGateway();
  [ada, bob] = [await aPerson("ada"), await aPerson("bob")];
});
afterAll(() => g.close());

describe("a user of the platform joins a team", () => {
  test("by an invitation that they accept with a key of their own", async () => {
    const { status, body: invitation } = await invite("Bob@Example.com", "admin");
    expect([status, invitation]).toEqual([
      201,
      expect.objectContaining({
        email: "bob@example.com",
        role: "admin",
        team: { uid: ada!.uid, name: "ada" },
        invited_by: "ada@example.com",
      }),
    ]);
    expect((await call("GET", `/team/${ada!.uid}/invitations`, undefined, ada!.key)).body.invitations).toEqual([
      invitation,
    ]);
    expect((await call("GET", "/invitations", undefined, bob!.key)).body.invitations).toEqual([invitation]);
    const accepted = await call("POST", `/invitations/${invitation.uid}/accept`, undefined, bob!.key);
    expect(accepted).toMatchObject({
      status: 200,
      body: { team: { uid: ada!.uid }, member: { email: "bob@example.com", role: "admin" } },
    });
    expect(await call("POST", `/invitations/${invitation.uid}/accept`, undefined, bob!.key)).toMatchObject({
      status: 404,
    });
    expect(await invite("bob@example.com")).toMatchObject({ status: 409, body: { reason: "already_member" } });
    expect(await teamsOf(bob!.key)).toEqual([bob!.uid]); // this key is valid for one team only
    const { body: both } = await call("POST", `/team/${bob!.uid}/keys`, { name: "both", all_teams: true }, bob!.key);
    expect(await teamsOf(both.api_key)).toEqual([ada!.uid, bob!.uid].toSorted());
    for (const team of [ada!, bob!])
      expect(
        (await g.api.call("GET", "/api/v1/whoami", { key: both.api_key, headers: { "x-service-team-uid": team.uid } }))
          .body.active_team_uid,
      ).toBe(team.uid);
    await call("DELETE", `/team/${ada!.uid}/members/${accepted.body.member.uid}`, undefined, ada!.key);
  });
  test("in no other way: they cannot be added, made owner of a new team or given a key", async () => {
    expect(await call("POST", `/team/${ada!.uid}/members`, { email: bob!.email }, ada!.key)).toMatchObject({
      status: 409,
      body: { reason: "invitation_required" },
    });
    expect(await call("POST", "/team", { name: "trap", owner_email: bob!.email }, APP_KEY)).toMatchObject({
      status: 409,
      body: { reason: "user_exists" },
    });
    const { principal } = await whoami(bob!.key);
    expect(
      await call("POST", `/team/${ada!.uid}/keys`, { name: "trap", user_uid: principal.uid }, ada!.key),
    ).toMatchObject({ status: 403 });
    expect(await teamsOf(bob!.key)).toEqual([bob!.uid]);
  });
});

describe("an invitation", () => {
  test("is visible to the invited person only; for others it is like a random one", async () => {
    const { email } = await aPerson(`eve-${newUid()}`);
    const { body: invitation } = await invite(email);
    for (const uid of [invitation.uid, newUid()]) {
      for (const [method, path] of [
        ["POST", `/invitations/${uid}/accept`],
        ["DELETE", `/invitations/${uid}`],
        ["DELETE", `/team/${bob!.uid}/invitations/${uid}`],
      ] as const)
        expect([path, await call(method, path, undefined, bob!.key)]).toMatchObject([
          path,
          { status: 404, body: { reason: "invitation_not_found" } },
        ]);
    }
  });
  test("is declined, revoked and expires; until then there is one per address", async () => {
    const { body: first } = await invite(bob!.email);
    expect(await invite(bob!.email)).toMatchObject({ status: 409, body: { reason: "already_invited" } });
    expect((await call("DELETE", `/invitations/${first.uid}`, undefined, bob!.key)).status).toBe(204);
    const { body: second } = await invite(bob!.email);
    expect((await call("DELETE", `/team/${ada!.uid}/invitations/${second.uid}`, undefined, ada!.key)).status).toBe(204);
    const { body: third } = await invite(bob!.email);
    g.clock.advance(30 * 24 * 60 * 60 * 1000);
    expect(await call("POST", `/invitations/${third.uid}/accept`, undefined, bob!.key)).toMatchObject({ status: 404 });
    expect((await call("GET", "/invitations", undefined, bob!.key)).body.invitations).toEqual([]);
    expect((await invite(bob!.email)).status).toBe(201);
  });
  test("is for a person with a personal key only: a team owner cannot create the account afterwards and accept", async () => {
    const email = `${newUid()}@example.com`;
    expect(await invite(email)).toMatchObject({
      status: 409,
      body: { reason: "no_account", detail: expect.stringContaining("POST /team/{uid}/members") },
    });
    const { body: member } = await call("POST", `/team/${bob!.uid}/members`, { email }, bob!.key);
    expect(await invite(email)).toMatchObject({ status: 409, body: { reason: "account_unclaimed" } });
    await call("POST", `/team/${bob!.uid}/keys`, { name: "own" }, member.api_key);
    expect((await invite(email)).status).toBe(201);
  });
  test("that has expired does not count towards the limit of 1000", async () => {
    const { uid, key } = await aPerson(`limit-${newUid()}`);
    await g.database.sql.query(
      `INSERT INTO invitations (uid, team_uid, email, role, invited_by, created_at, expires_at)
       SELECT gen_random_uuid(), $1, i || '@example.com', 'member', $2, $3::timestamptz, $3::timestamptz + interval '1 day' FROM generate_series(1, 1000) i`,
      [uid, (await whoami(key)).principal.uid, g.clock.now()],
    );
    const create = () => call("POST", `/team/${uid}/invitations`, { email: bob!.email }, key);
    expect(await create()).toMatchObject({ status: 409, body: { reason: "too_many_invitations" } });
    g.clock.advance(24 * 60 * 60 * 1000);
    expect((await create()).status).toBe(201);
  });
  test.each([
    ["is removed", "DELETE", undefined],
    ["may no longer invite", "PATCH", { role: "admin" }],
  ] as const)("ends when its inviter %s", async (_, method, body) => {
    const [first, second, guest] = [
      await aPerson(`first-${newUid()}`),
      await aPerson(`second-${newUid()}`),
      await aPerson(`guest-${newUid()}`),
    ];
    const { body: offer } = await call(
      "POST",
      `/team/${first.uid}/invitations`,
      { email: second.email, role: "owner" },
      first.key,
    );
    const { body: accepted } = await call("POST", `/invitations/${offer.uid}/accept`, undefined, second.key);
    const { body: both } = await call(
      "POST",
      `/team/${second.uid}/keys`,
      { name: "both", all_teams: true },
      second.key,
    );
    const { body: ended } = await call(
      "POST",
      `/team/${first.uid}/invitations`,
      { email: guest.email, role: "owner" },
      both.api_key,
    );
    const { body: elsewhere } = await call(
      "POST",
      `/team/${second.uid}/invitations`,
      { email: guest.email },
      both.api_key,
    );
    expect(
      (await call(method, `/team/${first.uid}/members/${accepted.member.uid}`, body, first.key)).status,
    ).toBeLessThan(300);
    expect((await call("GET", "/invitations", undefined, guest.key)).body.invitations).toEqual([elsewhere]);
    expect(await call("POST", `/invitations/${ended.uid}/accept`, undefined, guest.key)).toMatchObject({
      status: 404,
      body: { reason: "invitation_not_found" },
    });
  });
  test("needs team.manage to create, and an unscoped key of one's own to accept", async () => {
    const { body: viewer } = await call(
      "POST",
      `/team/${ada!.uid}/members`,
      { email: `${newUid()}@example.com`, role: "viewer" },
      ada!.key,
    );
    expect(
      await call("POST", `/team/${ada!.uid}/invitations`, { email: "x@example.com" }, viewer.api_key),
    ).toMatchObject({ status: 403 });
    const { body: scoped } = await call(
      "POST",
      `/team/${bob!.uid}/keys`,
      { name: "ci", scopes: ["run.view"] },
      bob!.key,
    );
    for (const key of [viewer.api_key, scoped.api_key])
      expect(await call("GET", "/invitations", undefined, key)).toMatchObject({
        status: 403,
        body: { error_code: "not_authorized" },
      });
  });
});

describe("a key", () => {
  test("that an owner received for a new member has no personal rights; the first key that the member creates with it has", async () => {
    const { body: member } = await call(
      "POST",
      `/team/${ada!.uid}/members`,
      { email: `${newUid()}@example.com` },
      ada!.key,
    );
    const create = async (body = {}) =>
      (await call("POST", `/team/${ada!.uid}/keys`, { name: "k", ...body }, member.api_key)).body;
    expect(await whoami(member.api_key)).toMatchObject({ personal_permissions: [], teams: [{ uid: ada!.uid }] });
    expect((await create({ scopes: ["run.view"] })).key.personal).toBe(false);
    const own = await create();
    expect(own.key.personal).toBe(true);
    expect((await whoami(own.api_key)).personal_permissions).toContain("run.create");
    expect((await create()).key.personal).toBe(false); // ordered by any other holder of the first key
    expect(
      await call("POST", `/team/${ada!.uid}/keys`, { name: "wide", all_teams: true }, member.api_key),
    ).toMatchObject({ status: 403 });
  });
  test("has access to its person's resources within its scopes; an agent's key has none", async () => {
    const { body: scoped } = await call(
      "POST",
      `/team/${bob!.uid}/keys`,
      { name: "ci", scopes: ["run.view"] },
      bob!.key,
    );
    expect(await whoami(scoped.api_key)).toMatchObject({ personal_permissions: ["run.view"] });
    expect(
      await call(
        "POST",
        `/team/${bob!.uid}/keys`,
        { name: "wide", scopes: ["run.view"], all_teams: true },
        scoped.api_key,
      ),
    ).toMatchObject({ status: 403 });
    const { body: agent } = await call("POST", "/agent/identities", { name: "bot" }, bob!.key);
    const { body: key } = await call("POST", `/team/${bob!.uid}/keys`, { name: "bot", agent_uid: agent.uid }, bob!.key);
    expect(await whoami(key.api_key)).toMatchObject({ personal_permissions: [] });
  });
  test("for one team of a platform administrator cannot create keys with administration rights", async () => {
    const team = (await teamsOf(APP_KEY))[0]!;
    const { body: narrow } = await call("POST", `/team/${team}/keys`, { name: "one team" }, APP_KEY);
    expect(await call("POST", `/team/${team}/keys`, { name: "wide", all_teams: true }, narrow.api_key)).toMatchObject({
      status: 403,
    });
  });
});

test("agents of a factory are listed for keys with factory.view only", async () => {
  const factory = newUid();
  g.knownFactories.set(factory, bob!.uid);
  await call("POST", "/agent/identities", { name: "linked", factory_uid: factory }, bob!.key);
  const keyWith = async (scope: string) =>
    (await call("POST", `/team/${bob!.uid}/keys`, { name: scope, scopes: [scope] }, bob!.key)).body.api_key;
  const listed = async (key: string) =>
    (await call("GET", `/agent/identities?factory_uid=${factory}`, undefined, key)).body.agents.length;
  expect([await listed(await keyWith("run.view")), await listed(await keyWith("factory.view"))]).toEqual([0, 1]);
});
