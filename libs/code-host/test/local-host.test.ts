import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { localHost } from "../src/index.ts";

const root = mkdtempSync(join(tmpdir(), "repositories-"));
const work = mkdtempSync(join(tmpdir(), "work-"));
const bare = join(root, "acme", "shop.git");
const shop = { owner: "acme", repo: "shop" };
const host = localHost({ root });

const identity = {
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.com",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.com",
};
const git = (...args: string[]): string =>
  execFileSync("git", ["-C", work, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: "/usr/bin:/bin:/usr/local/bin", GIT_CONFIG_GLOBAL: "/dev/null", ...identity },
  }).trim();
const commit = (message: string, files: Record<string, string | Uint8Array>): string => {
  for (const [path, content] of Object.entries(files)) writeFileSync(join(work, path), content);
  git("add", "-A");
  git("commit", "-q", "-m", message);
  return git("rev-parse", "HEAD");
};

let first: string;
let onMain: string;
let onBranch: string;

beforeAll(() => {
  mkdirSync(join(root, "acme"));
  git("init", "-q", "-b", "trunk");
  first = commit("first", { "README.md": "# Shop\n", "old name.txt": "one\ntwo\nthree\nfour\nfive\n" });
  git("checkout", "-q", "-b", "agent/run-1");
  git("mv", "old name.txt", "new ä name.txt");
  onBranch = commit("work", { "README.md": "# Shop\n\nOpen.\n", "logo.bin": new Uint8Array([0, 1, 2, 0]) });
  git("checkout", "-q", "trunk");
  onMain = commit("concurrent", { "other.txt": "x\n" });
  git("clone", "-q", "--bare", work, bare);
});

describe("a local repository", () => {
  test("has its default branch and branches", async () => {
    expect(host.cloneUrl(shop)).toBe(bare);
    expect(await host.defaultBranch(shop)).toBe("trunk");
    expect(await host.branchSha(shop, "agent/run-1")).toBe(onBranch);
    expect(await host.branchSha(shop, "absent")).toBeUndefined();
  });

  test("resolves refs: branches, then tags, then full commit ids", async () => {
    execFileSync("git", ["-C", bare, "tag", "v1", first]);
    const refs = ["trunk", "v1", onBranch, "f".repeat(40), "absent"];
    expect(await Promise.all(refs.map((ref) => host.commitOf(shop, ref)))).toEqual([
      onMain,
      first,
      onBranch,
      undefined,
      undefined,
    ]);
    await expect(host.commitOf(shop, "--all")).rejects.toEqual(domainError({ reason: "branch_invalid" }));
  });

  test("shows the changes of a branch since it left the base, without later changes of the base", async () => {
    const diff = await host.diff(shop, "trunk", "agent/run-1");
    expect(diff).toMatchObject({ baseSha: onMain, headSha: onBranch, mergeBaseSha: first, isTruncated: false });
    expect(diff.files).toEqual([
      { path: "README.md", additions: 2, deletions: 0, isBinary: false },
      { path: "logo.bin", additions: 0, deletions: 0, isBinary: true },
      { oldPath: "old name.txt", path: "new ä name.txt", additions: 0, deletions: 0, isBinary: false },
    ]);
    expect(diff.text).toContain("+Open.");
    expect(diff.text).toContain("rename to new ä name.txt");
    expect(diff.text).not.toContain("other.txt");
  });

  test("compares commits, and a branch with itself gives an empty diff", async () => {
    expect((await host.diff(shop, first, onMain)).files.map((file) => file.path)).toEqual(["other.txt"]);
    expect(await host.diff(shop, "trunk", "trunk")).toMatchObject({ files: [], text: "" });
  });

  test("returns chosen files of the default branch, without links and files that are too long", async () => {
    git("checkout", "-q", "-b", "files", "trunk");
    mkdirSync(join(work, "skills"), { recursive: true });
    symlinkSync("/etc/passwd", join(work, "skills/link.md"));
    commit("files", { "skills/b.md": "b", "skills/a.md": "ä", "skills/long.md": "x".repeat(100) });
    git("push", "-q", join(bare), "files:refs/heads/trunk");
    const read = async (filesMax = 9) =>
      (await host.readFiles(shop, { wants: (path) => path.startsWith("skills/"), filesMax, fileBytesMax: 99 })).map(
        ({ path, content }) => [path, Buffer.from(content).toString()],
      );
    expect([await read(), await read(1)]).toEqual([
      [
        ["skills/a.md", "ä"],
        ["skills/b.md", "b"],
      ],
      [["skills/a.md", "ä"]],
    ]);
    git("push", "-q", "--force", bare, `${onMain}:refs/heads/trunk`);
    git("checkout", "-q", "trunk");
  });

  test("without a commit has no files", async () => {
    git("init", "-q", "--bare", join(root, "acme", "empty.git"));
    expect(
      await host.readFiles({ owner: "acme", repo: "empty" }, { wants: () => true, filesMax: 9, fileBytesMax: 9 }),
    ).toEqual([]);
  });

  test("truncates a long diff, never the list of files", async () => {
    const diff = await localHost({ root, diffBytesMax: 20 }).diff(shop, "trunk", "agent/run-1");
    expect([diff.text.length, diff.isTruncated, diff.files.length]).toEqual([20, true, 3]);
  });

  test("compares unrelated histories with the base itself", async () => {
    git("checkout", "-q", "--orphan", "island");
    const island = commit("island", { "island.txt": "i\n" });
    git("push", "-q", bare, "island");
    git("checkout", "-q", "trunk");
    expect(await host.diff(shop, "trunk", "island")).toMatchObject({ headSha: island, mergeBaseSha: undefined });
  });

  test("does not run programs from the repository's configuration", async () => {
    const trap = join(root, "trap.sh");
    const executed = join(root, "executed");
    writeFileSync(trap, `#!/bin/sh\ntouch ${executed}\n`);
    chmodSync(trap, 0o755);
    for (const key of ["diff.external", "diff.trap.command", "diff.trap.textconv", "core.pager", "core.fsmonitor"])
      git("--git-dir", bare, "config", key, trap);
    mkdirSync(join(bare, "info"), { recursive: true });
    writeFileSync(join(bare, "info", "attributes"), "* diff=trap\n");
    expect((await host.diff(shop, "trunk", "agent/run-1")).files).toHaveLength(3);
    expect(existsSync(executed)).toBe(false);
  });

  test.each([
    ["branch", () => host.diff(shop, "trunk", "absent"), "branch_not_found"],
    ["commit", () => host.diff(shop, "trunk", "f".repeat(40)), "branch_not_found"],
    ["repository", () => host.defaultBranch({ owner: "acme", repo: "absent" }), "repository_not_found"],
    ["owner", () => host.defaultBranch({ owner: "absent", repo: "shop" }), "repository_not_found"],
  ])("an absent %s is not found", async (_, act, reason) =>
    expect(act()).rejects.toEqual(domainError({ kind: "not_found", reason })),
  );

  test.each([
    ["an option as a branch", () => host.diff(shop, "trunk", "--output=/tmp/x"), "branch_invalid"],
    ["a revision expression", () => host.branchSha(shop, "trunk~1"), "branch_invalid"],
    ["a way out", () => host.defaultBranch({ owner: "..", repo: "shop" }), "repository_invalid"],
  ])("%s is rejected", async (_, act, reason) =>
    expect(act()).rejects.toEqual(domainError({ kind: "invalid_argument", reason })),
  );

  test("a link that leads out of the root, or not to a repository, is not found", async () => {
    symlinkSync(join(work, ".git"), join(root, "acme", "outside.git"));
    mkdirSync(join(root, "acme", "plain.git"));
    for (const repo of ["outside", "plain"])
      await expect(host.defaultBranch({ owner: "acme", repo })).rejects.toEqual(
        domainError({ reason: "repository_not_found" }),
      );
  });

  test("reports that it has no commits", async () => {
    git("init", "-q", "--bare", join(root, "acme", "empty.git"));
    await expect(host.defaultBranch({ owner: "acme", repo: "empty" })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "repository_empty" }),
    );
  });
});

describe("the time of a merge", () => {
  const pushed = (): void => void git("push", "-q", bare, "trunk");
  const at = (time: string, ...args: string[]): void => {
    const env = { PATH: "/usr/bin:/bin:/usr/local/bin", GIT_CONFIG_GLOBAL: "/dev/null", ...identity };
    const dates = { GIT_COMMITTER_DATE: time, GIT_AUTHOR_DATE: time };
    execFileSync("git", ["-C", work, ...args], { stdio: "ignore", env: { ...env, ...dates } });
  };

  test("is that of the commit that brought the head into the base; a fast-forward has that of the head", async () => {
    git("checkout", "-q", "-b", "agent/run-2", "trunk");
    at("2026-01-02T03:00:00Z", "commit", "--allow-empty", "-q", "-m", "by a run");
    const head = git("rev-parse", "HEAD");
    git("push", "-q", bare, "agent/run-2");
    expect(await host.mergeTime(shop, "trunk", head)).toBeUndefined();

    git("checkout", "-q", "trunk");
    at("2026-01-02T04:00:00Z", "merge", "-q", "--no-ff", "-m", "merge", "agent/run-2");
    at("2026-01-02T05:00:00Z", "commit", "--allow-empty", "-q", "-m", "later");
    pushed();
    expect(await host.mergeTime(shop, "trunk", head)).toEqual(new Date("2026-01-02T04:00:00Z"));

    at("2026-01-02T06:00:00Z", "commit", "--allow-empty", "-q", "-m", "fast-forwarded");
    const forwarded = git("rev-parse", "HEAD");
    at("2026-01-02T07:00:00Z", "commit", "--allow-empty", "-q", "-m", "later still");
    pushed();
    expect(await host.mergeTime(shop, "trunk", forwarded)).toEqual(new Date("2026-01-02T06:00:00Z"));
  });

  test("is unknown for a commit that the repository does not contain", async () => {
    expect(await host.mergeTime(shop, "trunk", "f".repeat(40))).toBeUndefined();
    await expect(host.mergeTime(shop, "absent", first)).rejects.toEqual(domainError({ reason: "branch_not_found" }));
  });
});
