/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { call } from "@millwright/rpc";
import { outboundRule } from "@millwright/outbound";
import { domainError, needs } from "@millwright/testing";
import { definitionTrees } from "../src/clients/definition-trees.ts";
import { OWNER, startWorld, TEAM, type World } from "./setup.ts";
import { aTree } from "./trees.ts";

let w: World;
let root: string;
let repository: string;
let factoryUid: string;

const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.com", ...args], {
    cwd: repository,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();

function commit(files: { path: string; content: string }[]): string {
  for (const { path, content } of files) {
    mkdirSync(dirname(join(repository, path)), { recursive: true });
    writeFileSync(join(repository, path), content);
  }
  git("add", "-A");
  git("commit", "-q", "--allow-empty", "-m", "change");
  return git("rev-parse", "HEAD");
}

beforeEach(async () => {
  root = mkdtempSync(join(realpathSync(tmpdir()), "millwright-repositories-"));
  repository = join(root, "allowed", "team", "factory");
  mkdirSync(repository, { recursive: true });
  w = await startWorld({ localRepositoryRoots: [join(root, "allowed")], gitTimeoutMs: 10_000 });
  factoryUid = (await w.aFactory()).uid;
});
afterEach(async () => {
  await w.stop();
  rmSync(root, { recursive: true, force: true });
});

const put = (source: { repositoryUrl?: string; branch?: string; directory?: string } = {}) =>
  w.factories.putSource({ factoryUid, source: { kind: "git", repositoryUrl: repository, ...source } }, call(OWNER));
const apply = () => w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 30_000 }));

needs("git", "a local repository is applied at the head of its branch, and again when the head has moved", async () => {
  git("init", "-q", "-b", "main");
  const first = commit([
    ...aTree({ "factory.yaml": `${aTree()[0]!.content}selfImprovement: { reviewerType: team }\n` }).map((file) => ({
      ...file,
      path: `deploy/factory/${file.path}`,
    })),
    { path: "src/main.ts", content: "code" },
  ]);
  await put({ directory: "/deploy/factory/" });
  expect((await apply()).source).toMatchObject({
    kind: "git",
    branch: "main",
    directory: "deploy/factory",
    state: "APPLIED",
    activeRevision: first,
    activeVersion: 1n,
  });
  expect((await w.factories.getFactory({ uid: factoryUid }, call(OWNER))).factory).toMatchObject({
    name: "Mended shop",
    management: "external_files",
    selfImprovement: { reviewer_type: "team" },
  });

  const second = commit([
    { path: "deploy/factory/agents/hand/agent.md", content: "---\nagentType: IMPLEMENT\n---\nDo it well.\n" },
  ]);
  expect((await apply()).source).toMatchObject({ activeRevision: second, activeVersion: 2n });

  commit([{ path: "deploy/factory/agents/hand/agent.md", content: "no frontmatter" }]);
  await expect(apply()).rejects.toEqual(domainError({ reason: "definition_invalid" }));
  expect((await w.factories.getSource({ factoryUid }, call(OWNER))).source).toMatchObject({
    state: "FAILED",
    activeRevision: second,
    activeVersion: 2n,
  });
});

needs("git", "another branch, and a repository whose root is the tree", async () => {
  git("init", "-q", "-b", "release/1");
  const head = commit(aTree());
  await put({ branch: "release/1" });
  expect((await apply()).source).toMatchObject({ activeRevision: head });
  await put({ branch: "main" });
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_unreachable" }));
});

needs("git", "links are not followed, and nothing of the repository is run", async () => {
  git("init", "-q", "-b", "main");
  const proof = join(root, "proof");
  writeFileSync(join(root, "secret.md"), "---\n---\nsecret");
  commit(aTree({ ".gitattributes": "* filter=evil\n" }));
  symlinkSync(join(root, "secret.md"), join(repository, "agents", "linked.md"));
  mkdirSync(join(repository, "agents", "spy"));
  symlinkSync(join(root, "secret.md"), join(repository, "agents", "spy", "agent.md"));
  commit([]);
  git("config", "filter.evil.smudge", `touch ${proof}`);
  git("config", "uploadpack.packObjectsHook", `touch ${proof}; exec`);
  git("config", "core.fsmonitor", `touch ${proof}`);
  await put();
  await apply();
  expect(w.identity.owner.activeDefinition(factoryUid)).toMatchObject({
    agents: [{ name: "foreman" }, { name: "hand" }],
  });
  expect(existsSync(proof)).toBe(false);
});

needs("git", "paths lead out of the allowed directories in no way", async () => {
  git("init", "-q", "-b", "main");
  commit(aTree());
  mkdirSync(join(root, "outside"));
  symlinkSync(join(root, "outside"), join(root, "allowed", "link"));
  for (const repositoryUrl of [
    join(root, "outside"),
    `${join(root, "allowed")}/../outside`,
    `${root}/allowedness`,
    join(root, "allowed"),
  ]) {
    await expect(put({ repositoryUrl })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "repository_not_allowed" }),
    );
  }
  await put({ repositoryUrl: join(root, "allowed", "link") });
  await expect(apply()).rejects.toEqual(domainError({ reason: "repository_not_allowed" }));
  await put({ repositoryUrl: join(root, "allowed", "nothing") });
  await expect(apply()).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "source_unreachable" }));
});

test.each([
  "https://127.0.0.1/r.git",
  "https://[::1]/r.git",
  "https://localhost/r.git",
  "https://169.254.169.254/r.git",
  "https://192.168.0.1:8443/r.git",
])("%s is inside the platform's network, and rejected", async (repositoryUrl) => {
  await expect(put({ repositoryUrl })).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "internal_address_refused" }),
  );
});

test("a host name is checked by its addresses at the time of the fetch", async () => {
  const rule = outboundRule([], async () => ["10.0.0.1"]);
  const trees = definitionTrees({
    localRepositoryRoots: [],
    outbound: rule,
    timeoutMs: 5_000,
    fileBytesMax: 1e9,
    secretOf: async () => undefined,
  });
  await expect(
    trees.take({ kind: "git", url: "https://inside.test/r.git", branch: "main", directory: "" }, TEAM),
  ).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "internal_address_refused" }));
});

needs("git", "a host that does not answer is a failure that may pass", async () => {
  await put({ repositoryUrl: "https://r.invalid/r.git" });
  await expect(apply()).rejects.toEqual(
    domainError({ kind: "unavailable", reason: "source_unreachable", retryable: true }),
  );
  expect((await w.factories.getSource({ factoryUid }, call(OWNER))).source).toMatchObject({
    state: "FAILED",
    activeVersion: 0n,
  });
});
