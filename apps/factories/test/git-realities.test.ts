/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer as createNetServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { outboundRule } from "@millwright/outbound";
import { call } from "@millwright/rpc";
import { AUTHORITY, domainError, eventually, GitServer, needs } from "@millwright/testing";
import { Repository } from "./repository.ts";
import { OWNER, startWorld, VIEWER, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

let w: World;
let repository: Repository;
let factoryUid: string;
let server: GitServer;

beforeAll(async () => {
  repository = new Repository();
  const caFile = join(repository.root, "authority.pem");
  writeFileSync(caFile, AUTHORITY);
  server = await new GitServer(repository.root).start();
  w = await startWorld({
    localRepositoryRoots: [repository.root],
    outbound: outboundRule(["127.0.0.1"]),
    gitCaFile: caFile,
    gitTimeoutMs: 20_000,
    gitFileBytesMax: 4 * 1024 * 1024,
  });
});
afterAll(async () => {
  await w.stop();
  await server.stop();
  repository.remove();
});
beforeEach(async () => {
  await w.reset();
  Object.assign(server, { canFilter: false, isOld: false });
  repository.begin();
  factoryUid = (await w.aFactory()).uid;
});

const put = (repositoryUrl = repository.path) =>
  w.factories.putSource({ factoryUid, source: { kind: "git", repositoryUrl } }, call(OWNER));
const apply = async () => {
  const { uid } = await production();
  return (await w.branches.applyBranch({ factoryUid, branchUid: uid }, call(OWNER, { timeoutMs: 60_000 }))).branch!;
};
const production = async () => (await w.branches.listBranches({ factoryUid }, call(VIEWER))).branches[0]!;
const refused = async (): Promise<{ reason: string; details: { path: string; code: string }[] }> =>
  (await apply().catch((error: unknown) => error)) as never;
/** Returns the temporary directories of fetches by this process. */
const leftovers = () =>
  readdirSync(tmpdir()).filter((name) => name.startsWith(`millwright-definition-${process.pid}-`));
let before: string[] = [];
beforeEach(() => void (before = leftovers()));
const leavesNothing = () => expect(leftovers().filter((name) => !before.includes(name))).toEqual([]);

const skills = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    path: `skills/s${n}/SKILL.md`,
    content: `---\nname: s${n}\ndescription: d\n---\nDo.\n`,
  }));

needs("git", "a tree of 2,000 files is applied, and one with more is rejected", async () => {
  repository.commit([...aTree({ "skills/tests/SKILL.md": undefined }), ...skills(1_996)]);
  await put();
  expect(await apply()).toMatchObject({ state: "ACTIVE", freshness: "CURRENT" });
  repository.commit(skills(1_997));
  await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 h'");
  await w.service.pollHeads();
  expect((await refused()).details).toMatchObject([{ code: "FF_LIMIT_EXCEEDED" }]);
  expect(await production()).toMatchObject({
    state: "FAILED",
    isServing: true,
    lastError: { code: "definition_invalid" },
  });
  leavesNothing();
});
needs("git", "files beside the definition cost nothing, however many they are", async () => {
  repository.commit([
    ...aTree(),
    ...Array.from({ length: 3_000 }, (_, n) => ({ path: `src/${n}.ts`, content: String(n) })),
  ]);
  await put();
  expect(await apply()).toMatchObject({ state: "ACTIVE" });
});
needs("git", "submodules are not followed", async () => {
  const inner = repository.commit(aTree());
  repository.git("submodule", "add", "-q", repository.path, "agents/inner");
  repository.commit();
  expect(repository.git("ls-tree", "HEAD", "agents/inner")).toContain(`160000 commit ${inner}`);
  await put();
  expect(await apply()).toMatchObject({ state: "ACTIVE" });
  expect(w.identity.owner.activeDefinition(factoryUid)).toMatchObject({
    agents: [{ name: "foreman" }, { name: "hand" }],
  });
  leavesNothing();
});
needs("git", "a file of the definition that is too large is named", async () => {
  repository.commit([...aTree(), { path: "agents/hand/agent.md", content: "x".repeat(2 * 1024 * 1024 + 1) }]);
  await put();
  expect((await refused()).details).toMatchObject([{ path: "agents/hand/agent.md", code: "FF_LIMIT_EXCEEDED" }]);
  leavesNothing();
});
needs("git", "a repository that is too large to be fetched is rejected before the disk is full", async () => {
  repository.commit([...aTree(), { path: "video.bin", content: randomBytes(6 * 1024 * 1024) }]);
  await put();
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_too_large" }));
  expect(await production()).toMatchObject({ state: "FAILED", lastError: { code: "source_too_large" } });
  leavesNothing();
  await put(`${server.url}/team/factory/.git`);
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_too_large" }));
  leavesNothing();
});
needs(
  "git",
  "of such a repository only the definition is fetched where its server can leave files out, by branch and by commit",
  async () => {
    const first = repository.commit([
      ...aTree(),
      { path: "video.bin", content: randomBytes(6 * 1024 * 1024) },
      { path: "agents/hand/skills/notes.bin", content: randomBytes(3 * 1024 * 1024) },
    ]);
    const url = `${server.url}/team/factory/.git`;
    await put(url);
    await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_too_large" }));
    server.canFilter = true;
    expect(await apply()).toMatchObject({ state: "ACTIVE", appliedSha: first, freshness: "CURRENT" });
    expect(w.identity.owner.activeDefinition(factoryUid)).toMatchObject({
      agents: [{ name: "foreman" }, { name: "hand" }],
    });
    const second = repository.commit([
      { path: "factory.yaml", content: aTree()[0]!.content.replace("From files", "The second") },
      { path: "agents/copy/agent.md", content: aTree().find(({ path }) => path === "agents/hand/agent.md")!.content },
    ]);
    await w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 60_000 }));
    expect([
      (await w.factories.getFactory({ uid: factoryUid }, call(VIEWER))).factory!.description,
      (await production()).appliedSha,
    ]).toEqual(["The second", second]);
    leavesNothing();
  },
);
needs("git", "a server without support for partial fetches is read completely", async () => {
  Object.assign(server, { canFilter: true, isOld: true });
  const head = repository.commit([...aTree(), { path: "README.md", content: "Hello" }]);
  await put(`${server.url}/team/factory/.git`);
  expect(await apply()).toMatchObject({ state: "ACTIVE", appliedSha: head });
  leavesNothing();
});
needs("git", "a file of the definition from a filtering server has the same limits", async () => {
  server.canFilter = true;
  repository.commit([...aTree(), { path: "agents/hand/agent.md", content: "x".repeat(2 * 1024 * 1024 + 1) }]);
  await put(`${server.url}/team/factory/.git`);
  expect((await refused()).details).toMatchObject([{ path: "agents/hand/agent.md", code: "FF_LIMIT_EXCEEDED" }]);
  repository.commit([...aTree(), { path: "agents/hand/agent.md", content: randomBytes(6 * 1024 * 1024) }]);
  await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 h'");
  await w.service.pollHeads();
  expect((await refused()).reason).toBe("source_too_large");
  leavesNothing();
});
needs("git", "an empty repository, and a path without one, have no branch and no head", async () => {
  await put();
  await expect(apply()).rejects.toEqual(domainError({ kind: "conflict", reason: "branch_head_unknown" }));
  rmSync(join(repository.path, ".git"), { recursive: true });
  await w.rows("UPDATE tracked_branches SET poll_at = now() - interval '1 h'");
  await w.service.pollHeads();
  expect(await production()).toMatchObject({ freshness: "UNKNOWN", lastError: { code: "source_unreachable" } });
  await put(`${server.url}/team/nothing.git`);
  expect((await refused()).reason).toBe("source_unreachable");
  leavesNothing();
});
needs("git", "over https, a registered head is applied though a newer one is there", async () => {
  const head = repository.commit(aTree());
  await put(`${server.url}/team/factory/.git`);
  await w.service.pollHeads();
  repository.commit();
  expect(await apply()).toMatchObject({
    appliedSha: head,
    freshness: "CURRENT",
    repository: { owner: "team", repo: "factory", codeForge: "NONE" },
  });
});
needs("git", "a host that cannot be reached is a failure that may pass", async () => {
  const port = await closedPort();
  await put(`https://127.0.0.1:${port}/r.git`);
  await expect(apply()).rejects.toEqual(
    domainError({ kind: "unavailable", reason: "source_unreachable", retryable: true }),
  );
  expect(await production()).toMatchObject({ freshness: "UNKNOWN", lastError: { code: "source_unreachable" } });
  leavesNothing();
});
needs("git", "a host that answers nothing is given up in time, with its processes", async () => {
  const sockets: Socket[] = [];
  const silent = createNetServer((socket) => void sockets.push(socket.on("error", () => {}).resume())).listen(
    0,
    "127.0.0.1",
  );
  await eventually(() => silent.listening);
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/r.git`;
  const hasty = await w.replica({ gitTimeoutMs: 500 });
  await put(url);
  const { uid: branchUid } = await production();
  await expect(
    w.branchesOf(hasty).applyBranch({ factoryUid, branchUid }, call(OWNER, { timeoutMs: 60_000 })),
  ).rejects.toEqual(domainError({ kind: "unavailable", reason: "source_unreachable" }));
  expect(await production()).toMatchObject({
    freshness: "UNKNOWN",
    lastError: { message: "Timed out while reading the repository." },
  });
  // A git process that was still running would keep its connection open.
  await eventually(() => sockets.length > 0 && sockets.every((socket) => socket.destroyed || socket.readableEnded));
  leavesNothing();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});
needs("git", "a server that speaks nonsense is a failure that may pass", async () => {
  repository.commit(aTree());
  server.instead = (_request, response) =>
    void response
      .writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" })
      .end("0000ffffnonsense");
  await put(`${server.url}/team/factory/.git`);
  await expect(apply()).rejects.toEqual(domainError({ kind: "unavailable", reason: "source_unreachable" }));
  server.instead = (_request, response) => void response.writeHead(503).end();
  await expect(apply()).rejects.toEqual(domainError({ kind: "unavailable", reason: "source_unreachable" }));
  server.instead = undefined;
  expect(await apply()).toMatchObject({ state: "ACTIVE" });
});

test("leftovers of a killed process are removed when the next one starts, and directories in use remain", async () => {
  const [old, fresh] = [1, 2].map(() => mkdtempSync(join(tmpdir(), "millwright-definition-0-"))) as [string, string];
  const longAgo = new Date(Date.now() - 2 * 3_600_000);
  utimesSync(old, longAgo, longAgo);
  await (await w.replica()).start();
  expect([existsSync(old), existsSync(fresh)]).toEqual([false, true]);
  rmSync(fresh, { recursive: true });
});

async function closedPort(): Promise<number> {
  const one = createNetServer().listen(0, "127.0.0.1");
  await eventually(() => one.listening);
  const { port } = one.address() as AddressInfo;
  await new Promise((resolve) => one.close(resolve));
  return port;
}
