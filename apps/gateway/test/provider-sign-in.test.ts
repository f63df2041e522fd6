import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { SignJWT, type JWTPayload } from "jose";
import type { ClaimRoles } from "../src/identity/domain/claimed-roles.ts";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";
import { CLIENT, startIssuer, type Issuer } from "./support/issuer.ts";

const CALLBACK = "/session/oidc/callback";
const OWN = { origin: "https://mill.example" };
const ROLES: ClaimRoles = {
  developers: { default: "member" },
  leads: { default: "admin", "no such team": "owner" },
  heads: { default: "owner" },
};

let issuer: Issuer;
let g: TestGateway;
beforeAll(async () => {
  issuer = await startIssuer();
  g = await openGateway({
    provider: {
      ...CLIENT,
      issuer: issuer.issuer,
      scopes: "openid email",
      redirectUri: `https://mill.example${CALLBACK}`,
      teamsClaim: "groups",
      roles: ROLES,
      label: "Acme",
    },
  });
});
afterEach(() => {
  issuer.forge({});
  issuer.setDown(false);
});
afterAll(async () => {
  await g.close();
  await issuer.close();
});

type Person = { sub: string; email?: string; email_verified?: boolean | string; groups?: unknown; name?: string };
let people = 0;
/** Returns a person whom the provider knows, with a verified address. */
const person = (fields: Partial<Person> = {}): Person => {
  const sub = `person-${(people += 1)}`;
  return { sub, email: `${sub}@example.com`, email_verified: true, name: `Person ${people}`, ...fields };
};

const get = (path: string, cookie?: string) =>
  g.api.call("GET", path, { key: null, ...(cookie === undefined ? {} : { headers: { cookie } }) });
/** Returns the named cookies that a response sets, as a Cookie header has them. */
const cookiesOf = ({ headers }: { headers: Headers }) =>
  headers.getSetCookie().flatMap((each) => (/=;/.test(each) ? [] : [each.split(";")[0]!]));
const begin = async (query = "", cookie?: string) => {
  const response = await get(`/session/oidc${query}`, cookie);
  return { ...response, url: response.headers.get("location")!, cookie: cookiesOf(response)[0]! };
};
/** Signs in as the person, by a browser that follows the whole way. */
const signIn = async (who: Person, query = "", cookie?: string) => {
  const started = await begin(query, cookie);
  const response = await get(`${CALLBACK}${issuer.authorize(started.url, who)}`, started.cookie);
  return { ...response, session: cookiesOf(response).find((each) => each.includes("millwright_session")) };
};
const whoAmI = async (session: string | undefined) => (await get("/api/v1/whoami", session ?? "")).body;
const teamsOf = async (session: string | undefined) =>
  ((await whoAmI(session)).teams as { name: string; role: string }[]).map(({ name, role }) => `${name}: ${role}`);
const isRefused = ({ status, body, session }: { status: number; body: string; session?: string | undefined }) => {
  expect(session).toBeUndefined();
  expect(body).toContain("You are not signed in");
  return [status, body.match(/<p class="problem">(.*?)<\/p>/)?.[1]];
};

describe("a sign-in", () => {
  test("leads to the provider with PKCE, state and nonce, which a sealed cookie has", async () => {
    const { status, url, headers } = await begin("?next=/runs");
    const asked = new URL(url).searchParams;
    expect([status, url.startsWith(`${issuer.issuer}/authorize?`)]).toEqual([302, true]);
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: "code",
      client_id: CLIENT.clientId,
      redirect_uri: `https://mill.example${CALLBACK}`,
      scope: "openid email",
      code_challenge_method: "S256",
    });
    for (const name of ["state", "nonce", "code_challenge"]) expect(asked.get(name)!.length).toBeGreaterThan(20);
    const cookie = headers.get("set-cookie")!;
    expect(cookie).toMatch(/^__Host-millwright_sign_in=[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
    expect(cookie).not.toContain(asked.get("state"));
    expect(new URL((await begin("?again=true")).url).searchParams.get("prompt")).toBe("login");
  });
  test("starts a session with all rights of the person, and opens the page that was asked for", async () => {
    const { status, headers, body, session } = await signIn(person({ groups: ["developers"] }), "?next=/runs?q=a");
    expect([status, headers.get("refresh")]).toEqual([200, "0; url=/runs?q=a"]);
    expect(body).toContain('href="/runs?q=a"');
    expect(headers.getSetCookie().map((each) => each.replace(/=v1[^;]+/, "=…"))).toEqual([
      "__Host-millwright_session=…; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict; Secure",
      "__Host-millwright_sign_in=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure",
    ]);
    expect(await teamsOf(session)).toEqual(["default: member"]);
    expect((await whoAmI(session)).personal_permissions).toContain("run.create");
  });
  test("signs the same person in again, by the subject and not by the address", async () => {
    const who = person({ groups: ["developers"] });
    const first = await whoAmI((await signIn(who)).session);
    const again = await whoAmI((await signIn({ ...who, email: "renamed@example.com" })).session);
    expect(again.principal.uid).toBe(first.principal.uid);
    const other = await whoAmI(
      (await signIn(person({ email: "renamed@example.com", groups: ["developers"] }))).session,
    );
    expect(other.principal.uid).not.toBe(first.principal.uid);
  });
  test("is offered to the console", async () =>
    expect((await get("/session")).body).toEqual({ provider: { label: "Acme", path: "/session/oidc" } }));
  test("does not end other sessions, and signing out everywhere ends all", async () => {
    const who = person({ groups: ["developers"] });
    const [first, second] = [(await signIn(who)).session!, (await signIn(who)).session!];
    expect(await teamsOf(first)).toEqual(await teamsOf(second));
    await g.api.call("DELETE", "/session?everywhere=true", { key: null, headers: { ...OWN, cookie: first } });
    for (const cookie of [first, second]) expect((await whoAmI(cookie)).reason).toBe("session_ended");
  });
  test("can create keys, which other people's keys cannot do for the person", async () => {
    const { session } = await signIn(person({ groups: ["developers"] }));
    const team = (await whoAmI(session)).teams[0].uid;
    const { status } = await g.api.call("POST", `/api/v1/team/${team}/keys`, {
      key: null,
      headers: { ...OWN, cookie: session! },
      body: { name: "laptop", all_teams: true },
    });
    expect(status).toBe(201);
  });
});

/** Returns a forgery that leaves out a claim. */
const without =
  (name: string) =>
  (valid: JWTPayload): JWTPayload =>
    Object.fromEntries(Object.entries(valid).filter(([claim]) => claim !== name));

describe("an attack", () => {
  const invalid = [400, expect.stringContaining("response of the sign-in provider is not valid")];
  const isLate = [
    400,
    expect.stringContaining("was started in another browser, is already complete, or took too long"),
  ];
  const victim = () => person({ groups: ["heads"] });

  test("with a code that was used already is refused", async () => {
    const started = await begin();
    const query = issuer.authorize(started.url, victim());
    expect((await get(`${CALLBACK}${query}`, started.cookie)).status).toBe(200);
    expect(isRefused(await get(`${CALLBACK}${query}`, started.cookie))).toEqual(invalid);
  });
  test("with a response for another browser is refused before the code is redeemed", async () => {
    const theirs = await begin();
    const query = issuer.authorize(theirs.url, victim());
    expect(isRefused(await get(`${CALLBACK}${query}`))).toEqual(isLate); // no cookie
    const before = issuer.requests.length;
    const mine = await begin();
    expect(isRefused(await get(`${CALLBACK}${query}`, mine.cookie))).toEqual(invalid); // another state
    expect(issuer.requests.slice(before)).toEqual([]);
    expect((await get(`${CALLBACK}${query}`, theirs.cookie)).status).toBe(200);
  });
  test("with a code that was issued to another browser is refused by PKCE", async () => {
    const [theirs, mine] = [await begin(), await begin()];
    const stolen = new URLSearchParams(issuer.authorize(theirs.url, victim())).get("code")!;
    const state = new URL(mine.url).searchParams.get("state")!;
    expect(
      isRefused(await get(`${CALLBACK}?${new URLSearchParams({ code: stolen, state }).toString()}`, mine.cookie)),
    ).toEqual(invalid);
  });
  test("with a changed or foreign cookie is refused", async () => {
    const started = await begin();
    const query = issuer.authorize(started.url, victim());
    const name = started.cookie.split("=")[0];
    for (const value of [`${started.cookie.slice(0, -3)}xxx`, `${name}=`, `${name}={"next":"/"}`])
      expect(isRefused(await get(`${CALLBACK}${query}`, value))).toEqual(isLate);
    const session = (await signIn(victim())).session!; // sealed for another place
    expect(isRefused(await get(`${CALLBACK}${query}`, `${name}=${session.split("=")[1]}`))).toEqual(isLate);
  });
  test("after ten minutes is refused", async () => {
    const started = await begin();
    const query = issuer.authorize(started.url, victim());
    g.clock.advance(600_000);
    expect(isRefused(await get(`${CALLBACK}${query}`, started.cookie))).toEqual(isLate);
  });
  test.each([
    ["of another issuer", { claims: (valid) => ({ ...valid, iss: "https://evil.example" }) }],
    ["for another audience", { claims: (valid) => ({ ...valid, aud: "other-client" }) }],
    [
      "for several audiences without naming this client",
      { claims: (valid) => ({ ...valid, aud: [CLIENT.clientId, "other"], azp: "other" }) },
    ],
    ["with another nonce", { claims: (valid) => ({ ...valid, nonce: "another" }) }],
    ["without a nonce", { claims: without("nonce") }],
    ["without a subject", { claims: without("sub") }],
    ["that has expired", { claims: (valid) => ({ ...valid, iat: valid.iat! - 7200, exp: valid.iat! - 3600 }) }],
    ["without an expiry", { claims: without("exp") }],
    ["with the algorithm none", { idToken: (valid) => `${part({ alg: "none" })}.${valid.split(".")[1]}.` }],
    ["with a changed payload", { idToken: (valid) => changed(valid) }],
    ["with the signature of a key that is not published", { signedByOther: true }],
    ["that is no token", { idToken: () => "x.y.z" }],
  ] satisfies [string, Parameters<Issuer["forge"]>[0]][])("with an ID token %s is refused", async (_, forgery) => {
    issuer.forge(forgery);
    expect(isRefused(await signIn(victim()))).toEqual(invalid);
  });
  test("with an ID token signed by the client's secret or the public key as a secret is refused", async () => {
    const hmac = async (secret: Uint8Array) => {
      const started = await begin();
      const claims = { sub: "x", nonce: new URL(started.url).searchParams.get("nonce"), groups: ["heads"] };
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: "HS256" })
        .setIssuer(issuer.issuer)
        .setAudience(CLIENT.clientId)
        .setIssuedAt()
        .setExpirationTime("5m")
        .sign(secret);
      issuer.forge({ idToken: () => token });
      return get(`${CALLBACK}${issuer.authorize(started.url, victim())}`, started.cookie);
    };
    expect(isRefused(await hmac(Buffer.from(CLIENT.clientSecret)))).toEqual(invalid);
    expect(isRefused(await hmac(new Uint8Array(32)))).toEqual(invalid);
  });
  test.each(["https://evil.example/", "//evil.example", "/\\evil.example", "/session/oidc", "javascript:alert(1)"])(
    "by the return path %s leads to /",
    async (next) => {
      const { headers, body } = await signIn(person({ groups: ["developers"] }), `?next=${encodeURIComponent(next)}`);
      expect(headers.get("refresh")).toBe("0; url=/");
      expect(body).not.toContain("evil");
    },
  );
  test("by a session that was set before (fixation) is worth nothing: the session is another one", async () => {
    const planted = (await signIn(person({ groups: ["developers"] }))).session!;
    const started = await begin("", planted);
    const response = await get(
      `${CALLBACK}${issuer.authorize(started.url, victim())}`,
      `${planted}; ${started.cookie}`,
    );
    const session = cookiesOf(response)[0]!;
    expect(session).not.toBe(planted);
    expect(await teamsOf(planted)).toEqual(["default: member"]); // still the attacker's own
  });
  test("by a refusal of the provider shows no text of the response", async () => {
    const started = await begin();
    const state = new URL(started.url).searchParams.get("state")!;
    const query = new URLSearchParams({ error: "access_denied", error_description: "<script>x</script>", state });
    const response = await get(`${CALLBACK}?${query.toString()}`, started.cookie);
    expect(isRefused(response)).toEqual([403, expect.stringContaining("cancelled")]);
    expect(response.body).not.toContain("<script");
  });
  test("while the provider is down states this", async () => {
    const started = await begin();
    issuer.setDown(true);
    const response = await get(`${CALLBACK}${issuer.authorize(started.url, victim())}`, started.cookie);
    expect(isRefused(response)).toEqual([503, expect.stringContaining("does not respond")]);
  });
});

describe("teams and roles", () => {
  test("follow the claims of each sign-in, the highest role first", async () => {
    const who = person({ groups: ["developers", "leads", "other"] });
    expect(await teamsOf((await signIn(who)).session)).toEqual(["default: admin"]);
    const { session } = await signIn({ ...who, groups: "developers" });
    expect(await teamsOf(session)).toEqual(["default: member"]);
    const refused = await signIn({ ...who, groups: [] });
    expect(isRefused(refused)).toEqual([
      403,
      `You are in no team. Ask an owner of a team to invite ${who.email}, then sign in again.`,
    ]);
    expect((await whoAmI(session)).reason).toBe("session_ended"); // with the last team
    expect(await teamsOf((await signIn(who)).session)).toEqual(["default: admin"]);
  });
  test("end keys of the person in a team that the claims no longer give", async () => {
    const who = person({ groups: ["developers"] });
    const { session } = await signIn(who);
    const team = (await whoAmI(session)).teams[0].uid;
    const { body } = await g.api.call("POST", `/api/v1/team/${team}/keys`, {
      key: null,
      headers: { ...OWN, cookie: session! },
      body: { name: "laptop" },
    });
    await signIn({ ...who, groups: [] });
    expect((await g.api.call("GET", "/api/v1/whoami", { key: body.api_key })).status).toBe(401);
  });
  test("that were given in the platform stay as they are", async () => {
    const owner = await signIn(person({ groups: ["heads"] }));
    const team = (await whoAmI(owner.session)).teams[0].uid;
    const { body: created } = await g.api.call("POST", "/api/v1/team", { body: { name: "direct" } });
    const who = person({ groups: ["developers"] });
    await signIn(who);
    await g.api.call("POST", `/api/v1/team/${created.team.uid}/invitations`, {
      body: { email: who.email, role: "admin" },
    });
    const { session } = await signIn(who);
    const { body } = await get("/api/v1/invitations", session);
    await g.api.call("POST", `/api/v1/invitations/${body.invitations[0].uid}/accept`, {
      key: null,
      headers: { ...OWN, cookie: session! },
    });
    expect(await teamsOf((await signIn({ ...who, groups: [] })).session)).toEqual(["direct: admin"]);
    expect(team).not.toBe(created.team.uid);
  });
  test("keep the last owner of a team", async () => {
    const { body } = await g.api.call("POST", "/api/v1/team", { body: { name: "heads only" } });
    const who = person({ groups: ["developers"] });
    const { session } = await signIn(who);
    const { uid } = (await whoAmI(session)).principal;
    await g.database.sql.query("DELETE FROM memberships WHERE team_uid = $1", [body.team.uid]);
    await g.database.sql.query(
      "INSERT INTO memberships (team_uid, user_uid, role, from_claims) VALUES ($1, $2, 'owner', true)",
      [body.team.uid, uid],
    );
    expect(await teamsOf((await signIn(who)).session)).toContain("heads only: owner");
  });
  test("that claims gave are published as changes of members by the person", async () => {
    const who = person({ groups: ["developers"] });
    const { uid } = (await whoAmI((await signIn(who)).session)).principal;
    await signIn({ ...who, groups: ["leads"] });
    await signIn({ ...who, groups: [] });
    const { rows } = await g.database.sql.query(
      `SELECT type || ' ' || actor_uid AS change FROM stream.event_pending WHERE entity_uid LIKE '%:' || $1
        UNION ALL SELECT type || ' ' || actor_uid FROM stream.event_log WHERE entity_uid LIKE '%:' || $1
        ORDER BY 1`,
      [uid],
    );
    expect(rows.map((row) => row["change"])).toEqual([
      `millwright.member.added.v1 ${uid}`,
      `millwright.member.removed.v1 ${uid}`,
      `millwright.member.updated.v1 ${uid}`,
    ]);
  });
});

describe("a person in no team", () => {
  const accountsWith = async (email: string | undefined) =>
    (await g.database.sql.query("SELECT uid FROM users WHERE email = $1", [email])).rows.length;

  test("sees what to do, and gets no account and no session", async () => {
    const who = person();
    expect(isRefused(await signIn(who))).toEqual([
      403,
      `You are in no team. Ask an owner of a team to invite ${who.email}, then sign in again.`,
    ]);
    expect(await accountsWith(who.email)).toBe(0);
  });
  test("joins by an invitation to the verified address, which they accept", async () => {
    const team = await g.newTeam("inviting");
    const who = person();
    const invited = await g.api.call("POST", `/api/v1/team/${team.uid}/invitations`, {
      key: team.key,
      body: { email: who.email!.toUpperCase(), role: "admin" },
    });
    expect(invited.status).toBe(201);
    const { session } = await signIn(who);
    expect(await teamsOf(session)).toEqual([]);
    const { body } = await get("/api/v1/invitations", session);
    const accepted = await g.api.call("POST", `/api/v1/invitations/${body.invitations[0].uid}/accept`, {
      key: null,
      headers: { ...OWN, cookie: session! },
    });
    expect([accepted.status, await teamsOf(session)]).toEqual([200, ["inviting: admin"]]);
    await g.api.call("DELETE", `/api/v1/team/${team.uid}/members/${accepted.body.member.uid}`, { key: team.key });
    expect((await whoAmI(session)).reason).toBe("session_ended");
    expect((await signIn(who)).status).toBe(403);
  });
  test.each([false, undefined, "false", 1])(
    "does not get the invitation if email_verified is %j",
    async (isVerified) => {
      const team = await g.newTeam(`unverified-${typeof isVerified}-${String(isVerified)}`);
      const who = person({ email_verified: isVerified as boolean });
      await g.api.call("POST", `/api/v1/team/${team.uid}/invitations`, { key: team.key, body: { email: who.email } });
      expect(isRefused(await signIn(who))).toEqual([
        403,
        expect.stringContaining("has not verified an e-mail address"),
      ]);
      expect(await accountsWith(who.email)).toBe(0);
      const { session } = await signIn({ ...who, groups: ["developers"] });
      expect((await whoAmI(session)).principal.email).toMatch(/@unverified\.invalid$/);
      expect((await get("/api/v1/invitations", session)).body.invitations).toEqual([]);
      const later = await signIn({ ...who, email_verified: "true", groups: ["developers"] });
      expect((await whoAmI(later.session)).principal.email).toBe(who.email);
      expect((await get("/api/v1/invitations", later.session)).body.invitations).toHaveLength(1);
    },
  );
});

describe("an account that exists already", () => {
  const added = async (who: Person) => {
    const team = await g.newTeam(`adding-${who.sub}`);
    const { body } = await g.api.call("POST", `/api/v1/team/${team.uid}/members`, {
      key: team.key,
      body: { email: who.email },
    });
    return { team, firstKey: body.api_key as string };
  };
  const personalKey = async (teamUid: string, firstKey: string) =>
    (await g.api.call("POST", `/api/v1/team/${teamUid}/keys`, { key: firstKey, body: { name: "own" } })).body
      .api_key as string;
  const sessionOf = async (key: string) =>
    cookiesOf(await g.api.call("POST", "/session", { key: null, headers: OWN, body: { key } }))[0]!;

  test("is not connected by its address alone while a key gives access to it", async () => {
    const who = person();
    await added(who);
    const refused = await signIn({ ...who, groups: ["developers"] });
    expect(isRefused(refused)).toEqual([409, expect.stringContaining(`${who.email} has an account already`)]);
  });
  test("is never connected by an address that is not verified", async () => {
    const who = person();
    const { team, firstKey } = await added(who);
    const { body } = await g.api.call("GET", `/api/v1/team/${team.uid}/keys`, { key: firstKey });
    for (const { uid } of body.keys)
      await g.api.call("DELETE", `/api/v1/team/${team.uid}/keys/${uid}`, { key: team.key });
    expect((await signIn({ ...who, email_verified: false })).status).toBe(403);
    expect(await teamsOf((await signIn(who)).session)).toEqual([`adding-${who.sub}: member`]); // verified, no keys
  });
  test("is connected by the person who is signed in with their own key", async () => {
    const who = person();
    const { team, firstKey } = await added(who);
    const cookie = await sessionOf(await personalKey(team.uid, firstKey));
    const { session } = await signIn(who, "?connect=true", cookie);
    expect(await teamsOf(session)).toEqual([`adding-${who.sub}: member`]);
    expect(await teamsOf((await signIn(who)).session)).toEqual([`adding-${who.sub}: member`]);
  });
  test("is not connected by a key that another person created", async () => {
    const who = person();
    const { firstKey } = await added(who);
    const ofOwner = await get("/session/oidc?connect=true", await sessionOf(firstKey));
    expect(isRefused(ofOwner)).toEqual([
      403,
      expect.stringContaining("a key without scopes that you created yourself"),
    ]);
    expect((await get("/session/oidc?connect=true")).status).toBe(401);
  });
  test("is not connected to a second person", async () => {
    const who = person({ groups: ["developers"] });
    await signIn(who);
    const { team, firstKey } = await added(person());
    const cookie = await sessionOf(await personalKey(team.uid, firstKey));
    expect(isRefused(await signIn(who, "?connect=true", cookie))).toEqual([
      409,
      "This account of the provider signs in another person of this platform.",
    ]);
  });
  test("lets the first owner sign in with the provider, with platform administration", async () => {
    const who = person();
    await signIn(who, "?connect=true", await sessionOf(APP_KEY));
    expect(await whoAmI((await signIn(who)).session)).toMatchObject({
      platform_admin: true,
      principal: { email: "owner@localhost" },
    });
  });
});

describe("an invitation of an address that has no account", () => {
  test("is not accepted by an account that the owner of another team creates for the address", async () => {
    const [inviting, evil] = [await g.newTeam("honest"), await g.newTeam("evil")];
    const who = person();
    const { body: invitation } = await g.api.call("POST", `/api/v1/team/${inviting.uid}/invitations`, {
      key: inviting.key,
      body: { email: who.email, role: "owner" },
    });
    const { body: first } = await g.api.call("POST", `/api/v1/team/${evil.uid}/members`, {
      key: evil.key,
      body: { email: who.email },
    });
    const { body: own } = await g.api.call("POST", `/api/v1/team/${evil.uid}/keys`, {
      key: first.api_key,
      body: { name: "own" },
    });
    const accept = await g.api.call("POST", `/api/v1/invitations/${invitation.uid}/accept`, { key: own.api_key });
    expect([accept.status, accept.body.reason]).toEqual([403, "email_not_verified"]);
    expect((await signIn(who)).status).toBe(409);
  });
});

test("a refused response is logged with its reason, without secrets", async () => {
  const started = await begin();
  issuer.forge({ claims: (valid) => ({ ...valid, aud: "other" }) });
  const query = issuer.authorize(started.url, person());
  await get(`${CALLBACK}${query}`, started.cookie);
  // of an error, the log has these members and those of its causes that are errors
  const written = g.log.entries.map(({ message, fields: { error, ...fields } }) => {
    const { message: text, stack, code } = (error ?? {}) as Error & { code?: string };
    return { message, ...fields, text, stack, code };
  });
  expect(written).toContainEqual(
    expect.objectContaining({ component: "sign-in", code: "OAUTH_JWT_CLAIM_COMPARISON_FAILED" }),
  );
  const log = JSON.stringify(written);
  const { state, nonce } = Object.fromEntries(new URL(started.url).searchParams);
  const secrets = [
    CLIENT.clientSecret,
    new URLSearchParams(query).get("code"),
    started.cookie.split("=")[1],
    state,
    nonce,
  ];
  for (const secret of secrets) expect(log).not.toContain(secret);
});

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Returns the token with the groups of another person, and the old signature. */
function changed(token: string): string {
  const [header, payload, signature] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload!, "base64url").toString()) as object;
  return `${header}.${part({ ...claims, groups: ["heads"], sub: "another" })}.${signature}`;
}
