import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { executionDir, snapshotUrl } from "./support/a-context.ts";
import { execute, kinds, script } from "./support/execute.ts";
import { aBareRepository, aRepository, git } from "./support/repositories.ts";
import { inBubblewrap, markedSeconds, probe, processesLike, withDirectory } from "./support/sandboxes.ts";

/**
 * Returns what an agent's program does wherever it is executed. It writes to a path that exists only on the host. It
 * changes the workspace, so that a parked one does not match its snapshot. It leaves a process behind that replaces
 * exchanged files by links, and adds a filter to every repository in the workspace.
 */
const payload = (witness: string, seconds: string): string => `#!/bin/sh
echo "$(id -u) $*" >> '${witness}'
test -e /workspace/armed || exec cat
date +%s%N >> /workspace/noise
(setsid sh -c 'for n in $(seq 300); do
  for name in snapshot.tar snapshot-in.tar snapshot index pack restored; do for at in /run/millwright /run/millwright/inbox /run/millwright/outbox; do ln -sfn '${witness}' $at/$name; done; done
  for copy in /workspace/shop; do
    test -d $copy/.git || continue
    mkdir -p $copy/.git/info && echo "* filter=x" > $copy/.git/info/attributes
    grep -q payload $copy/.git/config || printf "[filter \\"x\\"]\\n\\tsmudge = /home/agent/payload\\n\\tclean = /home/agent/payload\\n[core]\\n\\tfsmonitor = /home/agent/payload\\n" >> $copy/.git/config
  done; sleep 0.01; done; sleep ${seconds}' </dev/null >/dev/null 2>&1 &)
exec cat
`;

const HOOKS = [
  "post-checkout",
  "post-commit",
  "post-index-change",
  "pre-push",
  "reference-transaction",
  "post-merge",
  "pre-auto-gc",
  "fsmonitor-watchman",
];

/**
 * The traps in an agent's workspace: shell commands in the sandbox, with the payload in `.git/payload` and in the home
 * directory.
 */
const TRAPS: readonly (readonly [name: string, commands: string])[] = [
  [
    "a file system monitor that starts a process which swaps the repository",
    "git config core.fsmonitor .git/payload; git config core.fsmonitorHookVersion 2",
  ],
  [
    "links in place of the files that worker and sandbox exchange",
    'for name in snapshot.tar snapshot-in.tar restored inbox outbox manifest.json; do for at in /run/millwright /workspace /workspace/shop /home/agent; do mkdir -p $at; ln -sfn "$WITNESS" $at/$name; done; done',
  ],
  [
    "hooks of every kind",
    `mkdir -p .git/hooks; for hook in ${HOOKS.join(" ")}; do cp .git/payload .git/hooks/$hook; done; git config core.hooksPath .git/hooks`,
  ],
  [
    "programs for other machines, keys and credentials",
    "for name in core.sshCommand core.gitProxy credential.helper gpg.program core.askPass core.editor core.pager diff.external remote.origin.uploadpack remote.origin.receivepack uploadpack.packObjectsHook; do git config $name /workspace/shop/.git/payload; done; git config commit.gpgSign true",
  ],
  [
    "settings in another file of the workspace",
    'printf "[core]\\n\\tfsmonitor = .git/payload\\n\\thooksPath = .git/hooks\\n[filter \\"x\\"]\\n\\tclean = .git/payload\\n\\tsmudge = .git/payload\\n" > /workspace/included; git config include.path /workspace/included; echo "* filter=x" > .gitattributes',
  ],
  [
    "filters of every kind",
    'git config filter.x.clean .git/payload; git config filter.x.smudge .git/payload; git config filter.y.process .git/payload; mkdir -p .git/info; echo "*.md filter=x" > .git/info/attributes; echo "*.txt filter=y" > .gitattributes',
  ],
  [
    "another repository of the machine as its object store",
    'mkdir -p .git/objects/info; echo "$SECRET/objects" > .git/objects/info/alternates',
  ],
  [
    "submodules beside and above the workspace",
    'printf "[submodule \\"x\\"]\\n\\tpath = ../../x\\n\\turl = $SECRET\\n\\tupdate = !/workspace/shop/.git/payload\\n" > .gitmodules; git config submodule.recurse true; git config submodule.x.update "!/workspace/shop/.git/payload"; git config submodule.x.url "$SECRET"',
  ],
  [
    "a repository directory that is a link, and a work tree elsewhere",
    "mv .git /workspace/moved; ln -s /workspace/moved .git; git config core.worktree /",
  ],
  [
    "pipes and hard links in place of files",
    "rm README.md; mkfifo README.md pipe; echo x > one; ln one two; ln .git/config linked",
  ],
  [
    "unreadable and unwritable directories",
    "mkdir -p closed/deep/er; echo x > closed/deep/er/x; chmod 000 closed/deep; chmod 555 closed; chmod 500 .git/objects",
  ],
  [
    "a process that renames everything while the platform works",
    '(setsid sh -c "while :; do mv /workspace/shop /workspace/s2; ln -s / /workspace/shop; rm /workspace/shop; mv /workspace/s2 /workspace/shop; sleep 0.02; done" </dev/null >/dev/null 2>&1 &)',
  ],
];

inBubblewrap("an agent that leaves", () => {
  test.each(TRAPS)(
    "%s runs nothing and writes nothing outside its sandboxes, in its run's later executions either",
    (_name, commands) =>
      withDirectory(async (root) => {
        const seconds = markedSeconds();
        const witness = join(root, "witness");
        writeFileSync(witness, "untouched\n");
        const [bare, secret] = [aBareRepository(root), aBareRepository(root, { "secret.txt": "secret" }, "secret")];
        const assignment = { repositories: [aRepository(bare)] };
        const host = { host: probe.host };
        const steps = [
          `- write: {path: trap.sh, content: ${JSON.stringify(`export WITNESS='${witness}' SECRET='${secret}'\ncp .git/payload ~/payload; chmod +x .git/payload ~/payload\n${commands}\nexit 0\n`)}}`,
          `- write: {path: .git/payload, content: ${JSON.stringify(payload(witness, seconds))}}`,
          "- shell: 'sh trap.sh; rm -f trap.sh; echo more > more.txt'",
          "- shell: 'echo again > again.txt'",
        ];
        const first = await execute({
          ...host,
          dir: await executionDir(root, "e1"),
          prompt: script(...steps),
          assignment,
        });
        expect(processesLike(seconds)).toEqual([]);
        const later = {
          ...assignment,
          executionSeq: 2,
          snapshotUrl: first.snapshots.length > 0 ? snapshotUrl(first.ctx.dir) : "",
        };
        // First the workspace that the first execution left, which differs from its snapshot; then the snapshot on
        // another worker.
        writeFileSync(join(root, "e1", "workspace", "armed"), "");
        const copies = [
          {
            repository: aRepository(bare),
            directory: "shop",
            baseBranch: "main",
            baseSha: git(bare, "rev-parse", "main"),
            pushedSha: "",
          },
        ];
        const parked = { copies, fingerprint: "other", snapshotKey: "snapshot-1", from: join(root, "e1", "workspace") };
        const next = ["- shell: 'ls; git status --porcelain | head -3'", "- pull_request: {title: Add it}"];
        const reused = await execute({
          ...host,
          dir: await executionDir(root, "e2"),
          prompt: script(...next),
          history: first.history(),
          assignment: later,
          parked,
        });
        expect(kinds(reused.events)).toContain("repository_cloned");
        expect(processesLike(seconds)).toEqual([]);
        await execute({
          ...host,
          dir: await executionDir(root, "e3"),
          prompt: script(...next),
          history: first.history(),
          assignment: { ...later, repositories: [aRepository(bare, { workBranch: "agent/run-2" })] },
        });
        expect(processesLike(seconds)).toEqual([]);
        expect(readFileSync(witness).equals(Buffer.from("untouched\n"))).toBe(true);
        expect(existsSync(join(root, "x"))).toBe(false);
        expect(
          git(bare, "for-each-ref", "--format=%(refname)")
            .split("\n")
            .filter((ref) => !/^refs\/heads\/(main|agent\/run-[12])$/.test(ref)),
        ).toEqual([]);
      }),
  );

  test.each([
    [
      "entries above its directory",
      (dir: string) =>
        execFileSync("tar", [
          "-C",
          dir,
          "-cPf",
          join(dir, "in.tar"),
          "--transform",
          "s,^entry,../../../../../../../../tmp/millwright-escaped,",
          "manifest.json",
          "entry",
        ]),
    ],
    [
      "a link, and an entry through it",
      (dir: string) => {
        symlinkSync(dir, join(dir, "link"));
        execFileSync("tar", ["-C", dir, "-cf", join(dir, "in.tar"), "manifest.json", "link"]);
        execFileSync("tar", ["-C", dir, "-rPf", join(dir, "in.tar"), "--transform", "s,^entry,link/escaped,", "entry"]);
      },
    ],
    [
      "a manifest that is a link",
      (dir: string) => {
        execFileSync("rm", [join(dir, "manifest.json")]);
        symlinkSync("/etc/passwd", join(dir, "manifest.json"));
        execFileSync("tar", ["-C", dir, "-cf", join(dir, "in.tar"), "manifest.json"]);
      },
    ],
  ])("a snapshot with %s harms nothing outside its sandbox", (_name, forge) =>
    withDirectory(async (root) => {
      const forged = join(root, "forged");
      mkdirSync(forged);
      writeFileSync(join(forged, "manifest.json"), JSON.stringify({ version: 1, repositories: [], hasFiles: false }));
      writeFileSync(join(forged, "entry"), "escaped");
      forge(forged);
      const files = { "memory:forged": readFileSync(join(forged, "in.tar")) };
      const assignment = {
        repositories: [aRepository(aBareRepository(root))],
        executionSeq: 2,
        snapshotUrl: "memory:forged",
      };
      const { result } = await execute({
        host: probe.host,
        dir: await executionDir(root, "e1"),
        prompt: script("- shell: ls"),
        files,
        assignment,
      });
      expect(result.outcome).toBe("DONE");
      expect([existsSync("/tmp/millwright-escaped"), existsSync(join(forged, "escaped"))]).toEqual([false, false]);
    }),
  );
});
