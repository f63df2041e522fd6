/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { outboundRule } from "@millwright/outbound";
import { call } from "@millwright/rpc";
import { aCaller, AUTHORITY, domainError, GitServer, needs } from "@millwright/testing";
import { Repository } from "./repository.ts";
import { OWNER, startWorld, TEAM, VIEWER, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

const SECRET = "s3cret'\"$(id)`%s\\ ü";
let w: World;
let repository: Repository;
let server: GitServer;
let factoryUid: string;
let head: string;

beforeAll(async () => {
  repository = new Repository();
  head = repository.commit(aTree());
  const caFile = join(repository.root, "authority.pem");
  writeFileSync(caFile, AUTHORITY);
  server = await new GitServer(repository.root).start();
  w = await startWorld({ outbound: outboundRule(["127.0.0.1"]), gitCaFile: caFile, gitTimeoutMs: 20_000 });
});
afterAll(async () => {
  await w.stop();
  await server.stop();
  repository.remove();
});
beforeEach(async () => {
  await w.reset();
  server.authorizations.length = 0;
  Object.assign(server, { wants: `x-access-token:${SECRET}`, instead: undefined });
  w.identity.secrets.clear();
  w.identity.secrets.set("GIT", SECRET);
  factoryUid = (await w.aFactory()).uid;
});

const put = (
  source: { secretName?: string; username?: string; repositoryUrl?: string } = { secretName: "GIT" },
  caller = OWNER,
) =>
  w.factories.putSource(
    { factoryUid, source: { kind: "git", repositoryUrl: `${server.url}/team/factory/.git`, ...source } },
    call(caller),
  );
const apply = async () => (await w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 60_000 }))).source;
const production = async () => (await w.branches.listBranches({ factoryUid }, call(VIEWER))).branches[0]!;
const basic = (credential: string) => `Basic ${Buffer.from(credential).toString("base64")}`;

needs("git", "a private repository is read with the team's secret, whatever characters it has", async () => {
  expect((await put()).source).toMatchObject({ secretName: "GIT" });
  expect(await apply()).toMatchObject({ state: "APPLIED", activeRevision: head, secretName: "GIT" });
  // only after the server has requested it
  expect(new Set(server.authorizations)).toEqual(new Set([undefined, basic(`x-access-token:${SECRET}`)]));
  await w.service.pollHeads();
  expect(await production()).toMatchObject({ freshness: "CURRENT", registeredHeadSha: head });
});
needs("git", "and with a user name", async () => {
  server.wants = `reader:${SECRET}`;
  await put({ secretName: "GIT", username: "reader" });
  expect(await apply()).toMatchObject({ state: "APPLIED", username: "reader" });
});
needs("git", "a value that is replaced counts for the next fetch", async () => {
  await put();
  await apply();
  Object.assign(server, { wants: "x-access-token:rotated" });
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_refused" }));
  w.identity.secrets.set("GIT", "rotated");
  expect(await apply()).toMatchObject({ state: "APPLIED" });
});
needs("git", "a wrong secret, and a missing one, are rejected with that reason, without revealing it", async () => {
  w.identity.secrets.set("GIT", "wr0ng");
  await put();
  for (const source of [{ secretName: "GIT" }, {}]) {
    await put(source);
    const error = await apply().catch((thrown: unknown) => thrown);
    expect(error).toEqual(domainError({ kind: "invalid_argument", reason: "source_refused" }));
    await w.service.pollHeads();
    expect(await production()).toMatchObject({
      state: "FAILED",
      freshness: "UNKNOWN",
      lastError: { code: "source_refused" },
    });
  }
  expect(w.log.entries.map((entry) => JSON.stringify(entry)).join()).not.toMatch(/wr0ng|eC1hY2Nlc3M/);
});
needs("git", "a secret that the team does not have, or that is no password, is reported by name", async () => {
  await put({ secretName: "NOTHING" });
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "secret_missing" }));
  w.identity.secrets.set("GIT", "two\nlines");
  await put();
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "secret_malformed" }));
  expect(server.authorizations).toEqual([]);
});
needs("git", "a redirect is not followed, and the secret does not go there", async () => {
  const elsewhere = await new GitServer(repository.root).start();
  server.instead = (request, response) =>
    void response.writeHead(302, { location: `${elsewhere.url}${request.url}` }).end();
  await put();
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_redirected" }));
  expect([elsewhere.authorizations, server.authorizations.every((sent) => sent === undefined)]).toEqual([[], true]);
  await elsewhere.stop();
});
needs("git", "the secret is in no argument and in no file while git works", async () => {
  const seen = new Set<string>();
  // Git waits while the server responds, so that its processes and its directory can be inspected.
  server.instead = (_request, response) => {
    const files = readdirSync(tmpdir())
      .filter((name) => name.startsWith(`millwright-definition-${process.pid}-`))
      .flatMap((name) => texts(join(tmpdir(), name)));
    for (const text of [...files, ...commandLines()]) seen.add(text);
    response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
  };
  await put();
  await expect(apply()).rejects.toEqual(domainError({ reason: "source_refused" }));
  expect(server.authorizations).toContain(basic(`x-access-token:${SECRET}`));
  expect([...seen].filter((text) => text.includes("s3cret"))).toEqual([]);
  expect([...seen].some((text) => text.includes("MILLWRIGHT_GIT_PASSWORD"))).toBe(true);
});
test("naming a secret requires permission to manage secrets", async () => {
  const manager = aCaller({ teams: [{ teamUid: TEAM, verbs: ["factory.view", "factory.manage", "source.apply"] }] });
  await expect(put({ secretName: "GIT" }, manager)).rejects.toEqual(
    domainError({ kind: "permission_denied", reason: "not_authorized" }),
  );
  expect(await w.rows("SELECT 1 FROM definition_sources")).toEqual([]);
  expect((await put({}, manager)).source?.secretName).toBeUndefined();
});
test.each([
  ["a name that no secret has", { secretName: "a b" }],
  ["a user without a secret", { username: "u" }],
  ["a user with a line break", { secretName: "GIT", username: "u\nv" }],
  ["a user with a colon", { secretName: "GIT", username: "u:v" }],
  ["a path on this machine", { secretName: "GIT", repositoryUrl: "/srv/git/r.git" }],
])("%s is refused", async (_what, source) => {
  await expect(put(source)).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "invalid_source" }));
});

function texts(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true, recursive: true }).flatMap((entry) =>
      entry.isFile() ? [readFileSync(join(entry.parentPath, entry.name), "latin1")] : [],
    );
  } catch {
    return []; // The file no longer exists.
  }
}

/** Returns the command lines of all processes of this machine, if /proc is available. */
function commandLines(): string[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "latin1");
        } catch {
          return "";
        }
      });
  } catch {
    return [];
  }
}
