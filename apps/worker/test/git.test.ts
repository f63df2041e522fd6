import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import type { worker } from "@millwright/contracts";
import { eventually } from "@millwright/testing";
import { OutboundGateClosed } from "../src/egress/outbound-gate.ts";
import { LeaseLost } from "../src/context/execution-errors.ts";
import { cloneRepository } from "../src/git/clone.ts";
import { commitAll } from "../src/git/commit.ts";
import { LOOPBACK, outboundRule, type OutboundRule } from "@millwright/outbound";
import { HostGit } from "../src/git/host-git.ts";
import { BranchMoved, push } from "../src/git/push.ts";
import type { WorkingCopy } from "../src/git/repository.ts";
import { restoreSnapshot } from "../src/git/restore-snapshot.ts";
import { AGENT_IDENTITY } from "../src/git/sandbox-git.ts";
import { checkedArchive, isPristine, packSnapshot } from "../src/git/take-snapshot.ts";
import { workspaceState } from "../src/git/workspace-state.ts";
import { PlatformShell } from "../src/sandbox/platform-shell.ts";
import type { Sandbox } from "../src/sandbox/sandbox.ts";
import { bareHost, type SandboxHost, type SandboxKind } from "../src/sandbox/spec.ts";
import { aBareRepository, aRepository, commitFiles, git } from "./support/repositories.ts";
import { withSmartHttp } from "./support/smart-http.ts";
import { TestGate } from "./support/outbound-gate.ts";
import { inEachSandbox, probe, withDirectory, withSandbox } from "./support/sandboxes.ts";

const never = new AbortController().signal;

/** Calls `use` with a shell for the workspace of `execution`, with an inbox. */
function inShell<T>(
  execution: string,
  host: SandboxHost,
  use: (shell: PlatformShell, inbox: string) => Promise<T>,
): Promise<T> {
  const inbox = join(execution, "inbox");
  mkdirSync(inbox, { recursive: true });
  return PlatformShell.use({ host, dir: execution, inbox, signal: never, ownSandbox: () => {} }, (shell) =>
    use(shell, inbox),
  );
}

test("git of the platform trusts the given certificate authorities", () =>
  withDirectory(async (dir) => {
    const trusted = async (caFile?: string) => {
      const hostGit = await HostGit.at(dir, never, caFile);
      return (await hostGit.run("show", ["-c", "alias.authorities=!echo $GIT_SSL_CAINFO", "authorities"], {})).trim();
    };
    expect([await trusted("/etc/ca.pem"), await trusted()]).toEqual(["/etc/ca.pem", ""]);
  }));

/** Clones into `<execution>/workspace`, through a cache in `root`. */
async function clone(
  root: string,
  repository: worker.Repository,
  execution = join(root, "execution"),
  {
    outbound = outboundRule(LOOPBACK),
    host = bareHost("none"),
    startSha,
  }: { outbound?: OutboundRule; host?: SandboxHost; startSha?: string } = {},
): Promise<WorkingCopy> {
  const cacheDir = join(root, "cache");
  const options = {
    git: await HostGit.at(cacheDir, never),
    outbound,
    cacheDir,
    directory: repository.name,
    expectedSha: undefined,
    startSha,
  };
  return inShell(
    execution,
    host,
    async (shell, inbox) => (await cloneRepository(repository, { ...options, shell, inbox })).copy,
  );
}

/** Returns the snapshot of a workspace, or undefined if it is as cloned. */
const snapshotOf = (dir: string, kind: SandboxKind, copies: readonly WorkingCopy[]): Promise<Buffer | undefined> =>
  inShell(dir, bareHost(kind), async (shell) => {
    const state = await workspaceState(shell, copies);
    return isPristine(state, copies) ? undefined : readFileSync(await packSnapshot(shell, copies, state));
  });

const restore = (dir: string, kind: SandboxKind, copies: readonly WorkingCopy[], archive: Buffer): Promise<void> =>
  inShell(dir, bareHost(kind), async (shell, inbox) => {
    writeFileSync(join(inbox, "in.tar"), archive);
    await restoreSnapshot(shell, copies, "in.tar");
  });

const pushing = (kind: SandboxKind, agent: Sandbox, dir: string) => ({
  host: bareHost(kind),
  agent,
  dir,
  signal: never,
  gate: { assertOpen: () => {}, whenOpen: () => Promise.resolve() },
  ownSandbox: () => {},
  outbound: outboundRule(LOOPBACK),
});

/** Calls `use` with a sandbox and a fresh clone of a local bare repository. */
const withClone = (
  kind: SandboxKind,
  use: (world: { sandbox: Sandbox; copy: WorkingCopy; bare: string; dir: string; root: string }) => Promise<void>,
) =>
  withDirectory(async (root) => {
    const bare = aBareRepository(root);
    await withSandbox(
      async (sandbox, dir) =>
        use({ sandbox, copy: await clone(root, aRepository(bare), dir, { host: bareHost(kind) }), bare, dir, root }),
      { kind, env: AGENT_IDENTITY },
    );
  });

test("a clone starts on the work branch at the base, and stores no credential", () =>
  withDirectory(async (dir) => {
    const bare = aBareRepository(dir);
    const copy = await clone(dir, aRepository(bare));
    const checkout = join(dir, "execution", "workspace", "shop");
    expect(copy).toMatchObject({
      directory: "shop",
      baseBranch: "main",
      baseSha: git(bare, "rev-parse", "main"),
      pushedSha: "",
    });
    expect(git(checkout, "branch", "--show-current")).toBe("agent/run-1");
    expect(git(checkout, "remote", "get-url", "origin")).toBe("/repositories/acme/shop.git");
    expect(await readdir(join(checkout, ".git", "hooks")).catch(() => [])).toEqual([]);
  }));

test("a clone has its base branch, which agents compare with", () =>
  withDirectory(async (root) => {
    const bare = aBareRepository(root, { "a.txt": "one\n" });
    await clone(root, aRepository(bare));
    const copy = join(root, "execution", "workspace", "shop");
    expect([git(copy, "log", "--format=%s", "main.."), git(copy, "rev-parse", "main")]).toEqual([
      "",
      git(bare, "rev-parse", "main"),
    ]);
    expect(git(copy, "rev-parse", "--abbrev-ref", "origin/HEAD")).toBe("origin/main");
  }));

test("missing repositories and branches are reported by name", () =>
  withDirectory(async (dir) => {
    const bare = aBareRepository(dir);
    await expect(clone(dir, aRepository(bare, { baseBranch: "absent" }))).rejects.toThrow(
      "Cannot clone acme/shop: it has no branch absent",
    );
    await expect(clone(dir, aRepository(join(dir, "absent.git")))).rejects.toThrow(/Cannot fetch acme\/shop/);
    git(dir, "init", "--quiet", "--bare", "empty.git");
    await expect(clone(dir, aRepository(join(dir, "empty.git")))).rejects.toThrow(/no branch/);
  }));

test("a repository inside the worker's network is not contacted, whatever its host name", () =>
  withDirectory(async (dir) => {
    const bare = aBareRepository(dir);
    await withSmartHttp(dir, bare, async ({ url, header, requests }) => {
      const remote = { ...aRepository(bare), cloneUrl: url, authorizationHeader: header, codeHost: "github" };
      const named = { ...remote, cloneUrl: url.replace("127.0.0.1", "forge.test") };
      const rule = (...allowed: string[]) => outboundRule(allowed, async () => ["127.0.0.1"]);
      await expect(clone(dir, remote, undefined, { outbound: rule() })).rejects.toThrow(
        /127\.0\.0\.1 is an internal address/,
      );
      await expect(clone(dir, named, undefined, { outbound: rule() })).rejects.toThrow(
        /forge\.test is an internal address/,
      );
      expect(requests).toEqual([]);
      expect(await clone(dir, named, undefined, { outbound: rule("forge.test") })).toMatchObject({
        baseBranch: "main",
      }); // git itself cannot resolve this name: it connects to the address that the worker checked
    });
  }));

test("concurrent clones of the same repository do not affect each other", () =>
  withDirectory(async (dir) => {
    const bare = aBareRepository(dir);
    const copies = await Promise.all([1, 2, 3, 4].map((n) => clone(dir, aRepository(bare), join(dir, `e${n}`))));
    expect(new Set(copies.map((copy) => copy.baseSha)).size).toBe(1);
    commitFiles(join(dir, "checkout-shop"), { "new.txt": "new" }, "Continue");
    git(join(dir, "checkout-shop"), "push", "--quiet", bare, "main");
    expect((await clone(dir, aRepository(bare), join(dir, "later"))).baseSha).toBe(git(bare, "rev-parse", "main"));
  }));

test("a stale lock of a killed git process does not block a repository", () =>
  withDirectory(async (dir) => {
    const bare = aBareRepository(dir);
    await clone(dir, aRepository(bare), join(dir, "e1"));
    const [cache = ""] = (await readdir(join(dir, "cache"))).filter((name) => name.endsWith(".git"));
    writeFileSync(join(dir, "cache", cache, "refs", "heads", "main.lock"), "");
    commitFiles(join(dir, "checkout-shop"), { "new.txt": "new" }, "Continue");
    git(join(dir, "checkout-shop"), "push", "--quiet", bare, "main");
    expect((await clone(dir, aRepository(bare), join(dir, "e2"))).baseSha).toBe(git(bare, "rev-parse", "main"));
    expect((await readdir(join(dir, "cache"))).sort()).toEqual([cache, "gitconfig"].sort());
  }));

// The cache may be shared by teams, and a name on a code host may be reassigned.
test("branches that the code host no longer lists are in no clone, although the cache contains them", () =>
  withDirectory(async (dir) => {
    const [bare, checkout] = [aBareRepository(dir), join(dir, "checkout-shop")];
    const removed = commitFiles(checkout, { "secret.txt": "secret" }, "Secret");
    git(checkout, "push", "--quiet", bare, "HEAD:refs/heads/side");
    await clone(dir, aRepository(bare), join(dir, "e1"));
    git(bare, "update-ref", "-d", "refs/heads/side");
    await clone(dir, aRepository(bare), join(dir, "e2"));
    expect(git(join(dir, "e1", "workspace", "shop"), "cat-file", "-t", removed)).toBe("commit");
    expect(() => git(join(dir, "e2", "workspace", "shop"), "cat-file", "-t", removed)).toThrow(
      /could not get object info|Not a valid object/,
    );
  }));

describe("a repository at a pinned commit", () => {
  /**
   * A repository whose main branch has advanced beyond the pinned commit, with a branch of another run and a tag on the
   * later commit.
   */
  const pinnedWorld = (use: (world: { dir: string; bare: string; pinned: string; later: string }) => Promise<void>) =>
    withDirectory(async (dir) => {
      const bare = aBareRepository(dir, { "a.txt": "one\n" });
      const checkout = join(dir, "checkout-shop");
      const pinned = git(bare, "rev-parse", "main");
      const later = commitFiles(checkout, { "solution.txt": "solved\n" }, "Solve");
      git(checkout, "tag", "v2");
      git(checkout, "push", "--quiet", bare, "main", "v2", "HEAD:refs/heads/agent/run-2");
      await use({ dir, bare, pinned, later });
    });

  test("is cloned at exactly that commit, on the work branch, without later commits", () =>
    pinnedWorld(async ({ dir, bare, pinned, later }) => {
      const copy = await clone(dir, aRepository(bare, { baseCommit: pinned }));
      const checkout = join(dir, "execution", "workspace", "shop");
      expect(copy).toMatchObject({ baseBranch: "main", baseSha: pinned, pushedSha: "" });
      expect([
        git(checkout, "branch", "--show-current"),
        git(checkout, "rev-parse", "HEAD", "main", "origin/main"),
      ]).toEqual(["agent/run-1", [pinned, pinned, pinned].join("\n")]);
      expect(git(checkout, "remote", "get-url", "origin")).toBe("/repositories/acme/shop.git");
      expect(git(checkout, "for-each-ref", "--format=%(refname)")).not.toMatch(/run-2|v2/);
      expect(() => git(checkout, "cat-file", "-t", later)).toThrow(/could not get object info|Not a valid object/);
    }));

  test("has what the run itself pushed before", () =>
    pinnedWorld(async ({ dir, bare, pinned }) => {
      const checkout = join(dir, "checkout-shop");
      git(checkout, "checkout", "--quiet", "-b", "agent/run-1", pinned);
      const own = commitFiles(checkout, { "own.txt": "own\n" }, "Own work");
      git(checkout, "push", "--quiet", bare, "agent/run-1");
      const copy = await clone(dir, aRepository(bare, { baseCommit: pinned }), undefined, { startSha: own });
      expect(copy).toMatchObject({ baseSha: pinned, pushedSha: own });
      expect(git(join(dir, "execution", "workspace", "shop"), "log", "--format=%s", "main..")).toBe("Own work");
    }));

  test.each([
    ["that is not there", "b".repeat(40)],
    ["that is no commit id", "main"],
  ])("%s is reported with its id and a machine-readable reason", (_what, baseCommit) =>
    pinnedWorld(async ({ dir, bare }) => {
      const failure = {
        reason: "commit_not_found",
        message: `Cannot clone acme/shop: no branch or tag contains the commit ${baseCommit}`,
      };
      await expect(clone(dir, aRepository(bare, { baseCommit }))).rejects.toMatchObject(failure);
    }),
  );

  test("is rejected if the code host no longer has the commit, although the cache has it", () =>
    pinnedWorld(async ({ dir, bare, pinned, later }) => {
      await clone(dir, aRepository(bare, { baseCommit: later }), join(dir, "e1"));
      git(bare, "update-ref", "refs/heads/main", pinned);
      git(bare, "update-ref", "-d", "refs/heads/agent/run-2");
      git(bare, "update-ref", "-d", "refs/tags/v2");
      await expect(clone(dir, aRepository(bare, { baseCommit: later }), join(dir, "e2"))).rejects.toMatchObject({
        reason: "commit_not_found",
      });
    }));
});

test("a branch is not mistaken for one beneath its name", () =>
  withDirectory(async (dir) => {
    const bare = aBareRepository(dir);
    git(bare, "branch", "agent/run-1/other", "main");
    expect((await clone(dir, aRepository(bare))).pushedSha).toBe("");
  }));

inEachSandbox("commit and push", (kind) => {
  test("the agent's work arrives on its branch, under the agent's name", () =>
    withClone(kind, async ({ sandbox, copy, bare, dir }) => {
      await sandbox.exec("cd shop && echo new > new.txt && rm README.md");
      const sha = await commitAll(sandbox, copy, "Replace the file");
      expect(await commitAll(sandbox, copy, "Nothing to commit")).toBe(sha);
      await push(copy, sha, pushing(kind, sandbox, dir));
      expect(git(bare, "log", "-1", "--format=%an <%ae> %s", "agent/run-1")).toBe(
        "Millwright agent <agent@millwright.invalid> Replace the file",
      );
      expect(git(bare, "ls-tree", "--name-only", "agent/run-1")).toBe("new.txt");
      await sandbox.exec("cd shop && echo more >> new.txt");
      await push(copy, await commitAll(sandbox, copy, "Add more"), pushing(kind, sandbox, dir));
      expect(git(bare, "rev-list", "--count", "agent/run-1")).toBe("3");
    }));

  test("a push is rejected if the branch was moved by another client, and nothing changes", () =>
    withClone(kind, async ({ sandbox, copy, bare, dir, root }) => {
      const other = commitFiles(join(root, "checkout-shop"), { "other.txt": "other" }, "Somebody else");
      git(join(root, "checkout-shop"), "push", "--quiet", bare, "HEAD:refs/heads/agent/run-1");
      await sandbox.exec("cd shop && echo new > new.txt");
      const sha = await commitAll(sandbox, copy, "Mine");
      await expect(push(copy, sha, pushing(kind, sandbox, dir))).rejects.toBeInstanceOf(BranchMoved);
      expect(git(bare, "rev-parse", "agent/run-1")).toBe(other);
      const again = await clone(root, aRepository(bare), join(root, "restarted"));
      expect(again.pushedSha).toBe(other);
    }));

  test("a push waits while the outbound gate is closed, until it opens or the execution ends", () =>
    withClone(kind, async ({ sandbox, copy, bare, dir }) => {
      await sandbox.exec("cd shop && echo new > new.txt");
      const sha = await commitAll(sandbox, copy, "Mine");
      const gate = new TestGate();
      gate.close();
      const ended = push(copy, sha, { ...pushing(kind, sandbox, dir), gate });
      ended.catch(() => undefined);
      await eventually(() => expect(gate.waiting).toBe(1));
      expect(git(bare, "branch", "--list", "agent/*")).toBe("");
      gate.end(new LeaseLost());
      await expect(ended).rejects.toBeInstanceOf(LeaseLost);
    }));

  test("a push during an unrenewed lease is retried, also when the lease is renewed a moment later", () =>
    withClone(kind, async ({ sandbox, copy, bare, dir }) => {
      await sandbox.exec("cd shop && echo new > new.txt");
      const sha = await commitAll(sandbox, copy, "Renewed in time");
      let refusals = 0;
      const assertOpen = () => {
        if (refusals++ === 0) throw new OutboundGateClosed();
      };
      await push(copy, sha, {
        ...pushing(kind, sandbox, dir),
        gate: { assertOpen, whenOpen: () => Promise.resolve() },
      });
      expect(refusals).toBeGreaterThan(1);
      expect(git(bare, "rev-parse", "agent/run-1")).toBe(sha);
    }));

  test("a push is aborted without effect when the outbound gate closes, and retried when it opens", () =>
    withDirectory((root) => {
      const gate = new TestGate();
      const delayed: (() => void)[] = [];
      const delay = (request: string) =>
        request.endsWith("/info/refs?service=git-receive-pack")
          ? new Promise<void>((resolve) => delayed.push(resolve))
          : Promise.resolve();
      const bare = aBareRepository(root);
      return withSmartHttp(
        root,
        bare,
        async ({ url, header }) => {
          await withSandbox(
            async (sandbox, dir) => {
              const copy = await clone(
                root,
                aRepository(url, { codeHost: "github", authorizationHeader: header }),
                dir,
              );
              await sandbox.exec("cd shop && echo new > new.txt");
              const sha = await commitAll(sandbox, copy, "In time after all");
              const pushed = push(copy, sha, { ...pushing(kind, sandbox, dir), gate });
              pushed.catch(() => undefined);
              await eventually(() => expect(delayed.length).toBe(1));
              gate.close();
              await eventually(() => expect(gate.waiting).toBe(1));
              delayed.splice(0).forEach((release) => release());
              expect(git(bare, "branch", "--list", "agent/*")).toBe("");
              gate.open();
              await eventually(() => expect(delayed.length).toBe(1));
              delayed.splice(0).forEach((release) => release());
              await pushed;
              expect(git(bare, "rev-parse", "agent/run-1")).toBe(sha);
            },
            { kind, env: AGENT_IDENTITY },
          );
        },
        delay,
      );
    }));

  test("no hook, filter, URL or setting of the agent's repository affects a push", () =>
    withClone(kind, async ({ sandbox, copy, bare, dir }) => {
      await sandbox.exec(`cd shop && echo '* filter=evil' > .gitattributes && mkdir -p .git/hooks
        for hook in pre-push reference-transaction post-index-change; do printf '#!/bin/sh\\necho $0 >> "$HOME/ran"\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook; done`);
      const sha = await commitAll(sandbox, copy, "Mine");
      await sandbox.exec(`cd shop && rm -f ~/ran && touch touched
        git config core.hooksPath .git/hooks; git config core.fsmonitor 'echo fsmonitor >> "$HOME/ran"; true'; git config filter.evil.clean 'echo filter >> "$HOME/ran"; cat'
        git config url./nowhere.insteadOf '${bare}'; git config remote.origin.pushurl /nowhere; git config push.default nothing; git config core.sshCommand /nowhere; git config gpg.program /nowhere`);
      await push(copy, sha, pushing(kind, sandbox, dir));
      expect(git(bare, "rev-parse", "agent/run-1")).toBe(sha);
      expect(existsSync(join(dir, "home", "ran"))).toBe(false);
      expect(
        (await readdir(dir))
          .filter((name) => name.startsWith("push-"))
          .flatMap((name) => (existsSync(join(dir, name, "ran")) ? [name] : [])),
      ).toEqual([]);
    }));

  test("the agent's commit is pushed if the sandbox runs as another user, whatever its file permissions", () =>
    withDirectory(async (root) => {
      const [bare, dir] = [aBareRepository(root), join(root, "execution")];
      const host = kind === "bwrap" ? probe.host : bareHost(kind);
      const copy = await clone(root, aRepository(bare), dir, { host });
      await withSandbox(
        async (sandbox) => {
          await sandbox.exec(
            "cd shop && umask 077 && echo new > new.txt && git add new.txt && git commit --quiet --message Own && chmod 700 . .git .git/objects",
          );
          const sha = await commitAll(sandbox, copy, "Nothing more");
          await push(copy, sha, { ...pushing(kind, sandbox, dir), host });
          expect(git(bare, "show", "agent/run-1:new.txt")).toBe("new");
        },
        { kind, host, dir, env: AGENT_IDENTITY },
      );
    }));

  test("a remote code host gets its credential from the worker, and the sandbox never has it", () =>
    withDirectory((root) =>
      withSmartHttp(root, aBareRepository(root), async ({ url, header, requests }) => {
        await withSandbox(
          async (sandbox, dir) => {
            const copy = await clone(root, aRepository(url, { codeHost: "github", authorizationHeader: header }), dir);
            await sandbox.exec("cd shop && echo new > new.txt");
            await push(copy, await commitAll(sandbox, copy, "Over the wire"), pushing(kind, sandbox, dir));
            expect(git(join(root, "code", "acme", "shop.git"), "log", "-1", "--format=%s", "agent/run-1")).toBe(
              "Over the wire",
            );
            expect(new Set(requests.map((request) => request.authorized))).toEqual(new Set([true]));
            expect(readFileSync(join(dir, "workspace", "shop", ".git", "config"), "utf8")).not.toContain("xtraheader");
            expect(
              (
                await sandbox.exec(`grep -r '${header.slice(-20)}' . ~ ; env | grep -c '${header.slice(-20)}'`)
              ).output.trim(),
            ).toBe("0");
          },
          { kind, env: AGENT_IDENTITY },
        );
      }),
    ));
});

inEachSandbox("snapshots", (kind) => {
  test("restore local commits, branch, changes, deletions, untracked and binary files, modes and other files; ignored ones stay away", () =>
    withClone(kind, async ({ sandbox, copy, bare, dir, root }) => {
      await sandbox.exec(`cd shop && git checkout -q -b side && echo one > one.txt && printf '\\000\\001\\377' > data.bin && echo ignored/ > .gitignore && git add -A && git commit -qm One
        echo changed >> one.txt; rm README.md; echo '#!/bin/sh' > run.sh; chmod 755 run.sh; printf '\\377\\000' > untracked.bin; ln -s one.txt link; mkdir ignored && echo x > ignored/x
        echo note > ../note.txt; mkdir -p ../.attachments/1 && echo a > ../.attachments/1/a`);
      const inside = await sandbox.exec(
        "cd shop && git status --porcelain --branch && git log --format='%H %s' && git stash list",
      );
      const archive = await snapshotOf(dir, kind, [copy]);
      expect(
        (await sandbox.exec("cd shop && git status --porcelain --branch && git log --format='%H %s' && git stash list"))
          .output,
      ).toBe(inside.output);

      await withSandbox(
        async (later, laterDir) => {
          const fresh = await clone(root, aRepository(bare), laterDir);
          await restore(laterDir, kind, [fresh], archive!);
          expect(
            (
              await later.exec(
                "cd shop && git status --porcelain --branch && git log --format='%H %s' && git stash list",
              )
            ).output,
          ).toBe(inside.output);
          expect(
            (
              await later.exec(
                "cd shop && cat one.txt && od -An -tx1 data.bin untracked.bin && stat -c %a run.sh && readlink link && cat ../note.txt && ls -a . ..",
              )
            ).output.split("\n"),
          ).toEqual(expect.arrayContaining(["one", "changed", " 00 01 ff ff 00", "755", "one.txt", "note"]));
          expect(
            (
              await later.exec(
                "ls shop/ignored .attachments shop/README.md; cd shop && git for-each-ref refs/millwright",
              )
            ).output,
          ).not.toMatch(/^(x|1|.*refs.millwright)$/m);
        },
        { kind, env: AGENT_IDENTITY },
      );
    }));

  test("an unchanged workspace has none", () =>
    withClone(kind, async ({ copy, dir }) => {
      expect(await snapshotOf(dir, kind, [copy])).toBeUndefined();
    }));

  test.each([
    ["a link", (path: string) => symlinkSync("/etc/hostname", path), /cannot be read/],
    ["a FIFO", (path: string) => execFileSync("mkfifo", [path]), /not a regular file/],
    [
      "a hard link",
      (path: string) => (writeFileSync(`${path}.other`, "x"), linkSync(`${path}.other`, path)),
      /not a regular file/,
    ],
    ["a directory", (path: string) => mkdirSync(path), /not a regular file/],
  ])("an archive that was replaced by %s is rejected", (_name, replace, refusal) =>
    withDirectory(async (dir) => {
      replace(join(dir, "snapshot.tar"));
      await expect(checkedArchive(join(dir, "snapshot.tar"))).rejects.toThrow(refusal);
    }),
  );

  test("a forged manifest is rejected", () =>
    withClone(kind, async ({ copy, dir, root }) => {
      writeFileSync(
        join(root, "manifest.json"),
        '{"version":1,"hasFiles":false,"repositories":[{"directory":"../x","branch":null}]}',
      );
      execFileSync("tar", ["-C", root, "-cf", join(root, "in.tar"), "manifest.json"]);
      await expect(restore(dir, kind, [copy], readFileSync(join(root, "in.tar")))).rejects.toThrow(
        /not a repository of this run/,
      );
    }));
});
