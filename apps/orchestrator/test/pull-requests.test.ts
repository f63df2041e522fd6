import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";

let root: string;
let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
let execution: ActiveExecution;
let branch: string;

const git = (cwd: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();

/** Commits a file on a branch of the bare repository, as a worker's push would. */
function push(file: string, content: string): string {
  const clone = mkdtempSync(join(tmpdir(), "millwright-clone-"));
  try {
    git(clone, "clone", "-q", join(root, "acme/app.git"), ".");
    const known = git(clone, "branch", "-r");
    if (known.includes(`origin/${branch}`)) git(clone, "checkout", "-q", "-B", branch, `origin/${branch}`);
    else if (known !== "") git(clone, "checkout", "-q", "-b", branch);
    writeFileSync(join(clone, file), content);
    git(clone, "add", "-A");
    git(clone, "commit", "-q", "-m", `Change ${file}`);
    git(clone, "push", "-q", "origin", branch);
    return git(clone, "rev-parse", "HEAD");
  } finally {
    rmSync(clone, { recursive: true });
  }
}

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "millwright-git-"));
  execFileSync("git", ["init", "-q", "--bare", "-b", "main", join(root, "acme/app.git")]);
  p = await catalogPlatform({ localRepositoryRoots: [root] });
  caller = aCaller();
  const teamUid = caller.teams[0]!.teamUid;
  await p.catalogue.createCodeHost({ codeHost: { teamUid, name: "local", kind: "local", root } }, p.as(caller));
  const created = await p.catalogue.createEnvironment(
    {
      environment: { ownerType: "team", ownerUid: teamUid, config: { github_repos: [{ owner: "acme", repo: "app" }] } },
    },
    p.as(caller),
  );
  branch = "main";
  push("README.md", "# App\n");
  const run = await p.run(caller, { config: { environment_id: created.environment!.uid } });
  branch = `agent/${run.uid}`;
  worker = await p.worker();
  execution = await startExecution(p, worker);
});
afterEach(async () => {
  await p.close();
  rmSync(root, { recursive: true });
});

const open = (headSha: string, over: Record<string, unknown> = {}) => {
  const lease = { executionId: BigInt(execution.ref.executionId), attempt: execution.ref.attempt };
  return p.workers.openPullRequest(
    {
      ...lease,
      owner: "acme",
      repo: "app",
      headBranch: branch,
      headSha,
      title: "Add hello",
      body: "Because.",
      ...over,
    },
    bearer(worker),
  );
};
const pageOf = (url: string, who = caller) =>
  p.artifacts.getPullRequest({ pullRequestUid: url.split("/").at(-1)! }, p.as(who));

test("an assignment states the address of the repository and the branch of the run", async () => {
  expect(execution.assignment.details.repositories).toEqual([
    {
      owner: "acme",
      name: "app",
      cloneUrl: join(root, "acme/app.git"),
      baseBranch: "",
      workBranch: branch,
      baseCommit: "",
      authorizationHeader: "",
      codeHost: "local",
    },
  ]);
});

test("a push becomes one pull request, with a page, an artifact and an event", async () => {
  const sha = push("hello.txt", "hi\n");
  const opened = await open(sha);
  expect(opened).toMatchObject({
    number: 1,
    adopted: false,
    url: expect.stringMatching(
      new RegExp(`^http://public.test/runs/${execution.assignment.job.run.runUid}/pull-requests/`),
    ),
  });
  const [shown] = (await p.runs.listRuns({}, p.as(caller))).runs;
  expect(shown?.artifacts).toMatchObject([
    { uid: opened.artifactUid, artifactType: "PULL_REQUEST", data: { url: opened.url, branch, status: "open" } },
  ]);
  expect((await p.events(shown!.uid)).at(-1)).toMatchObject({
    kind: "artifact_created",
    payload: { artifact_type: "PULL_REQUEST", title: "Add hello", url: opened.url },
  });
  expect(await pageOf(opened.url)).toMatchObject({
    ...{
      title: "Add hello",
      body: "Because.",
      headBranch: branch,
      baseBranch: "main",
      headSha: sha,
      status: "open",
      owner: "acme",
      repo: "app",
      number: 1,
    },
    ...{ files: [{ path: "hello.txt", additions: 1, deletions: 0 }], diff: expect.stringContaining("+hi") },
  });
});

test("the facts of a run have the size of its local pull request, also after the branch has moved", async () => {
  const size = async () => {
    const { runs } = await p.runFacts.listRunFacts(
      { runUids: [execution.assignment.job.run.runUid] },
      p.as(serviceCaller("metrics", newUid())),
    );
    return runs[0]!.pullRequests.map((pull) => [
      pull.codeHostKind,
      pull.repository,
      pull.number,
      pull.additions,
      pull.deletions,
      pull.changedFiles,
      pull.numCommits,
    ]);
  };
  push("hello.txt", "one\ntwo\n");
  await open(push("README.md", "# Other\n"));
  expect(await size()).toEqual([["local", "acme/app", 1, 3, 1, 2, 2]]);
  await open(push("hello.txt", "one\n"));
  expect(await size()).toEqual([["local", "acme/app", 1, 2, 1, 2, 3]]);
  await open("f".repeat(40)); // a commit that does not exist in the repository
  expect(await size()).toEqual([["local", "acme/app", 1, undefined, undefined, undefined, undefined]]);
});

test("a pull request is evidence of its run, with its diff", async () => {
  await open(push("hello.txt", "hi\n"));
  const evidence = await p.evidence.getRunEvidence(
    { runUid: execution.assignment.job.run.runUid },
    p.as(serviceCaller("scoring", newUid())),
  );
  expect(evidence.diff).toMatch(/^# Pull request acme\/app#1: Add hello\n(.|\n)*\+\+\+ b\/hello\.txt\n(.|\n)*\+hi\n/);
  expect(evidence.artifacts).toMatchObject([{ artifactType: "PULL_REQUEST" }]);
});

describe("commits that refs point to", () => {
  const resolve = async (...refs: [repo: string, ref: string][]) =>
    (
      await p.evidence.resolveCommits(
        { teamUid: caller.teams[0]!.teamUid, repositories: refs.map(([repo, ref]) => ({ owner: "acme", repo, ref })) },
        p.as(serviceCaller("scoring", newUid())),
      )
    ).repositories.map(({ commit }) => commit);

  test("are resolved for branches, tags, commits and the default branch, in their order", async () => {
    const bare = join(root, "acme/app.git");
    const sha = push("hello.txt", "hi\n");
    const main = git(bare, "rev-parse", "main");
    git(bare, "tag", "-a", "-m", "one", "v1", main);
    expect(await resolve(["app", ""], ["app", branch], ["app", "v1"], ["app", sha])).toEqual([main, sha, main, sha]);
  });

  test.each([
    ["an absent repository", "absent", "main", "repository_not_found", /acme\/absent/],
    ["an absent ref", "app", "nowhere", "ref_not_found", /acme\/app has no branch, tag or commit "nowhere"/],
    ["an absent commit", "app", "d".repeat(40), "ref_not_found", /acme\/app/],
    ["an invalid ref", "app", "a..b", "ref_invalid", /"a\.\.b"/],
  ])("of %s are refused by name", async (_what, repo, ref, reason, message) => {
    await expect(resolve([repo, ref])).rejects.toEqual(domainError({ reason }));
    await expect(resolve([repo, ref])).rejects.toThrow(message);
  });

  test("are resolved by the connections of that team, and for the scoring service alone", async () => {
    const asked = { teamUid: caller.teams[0]!.teamUid, repositories: [{ owner: "acme", repo: "app", ref: "" }] };
    await expect(p.evidenceByGateway.resolveCommits(asked, p.as(caller))).rejects.toEqual(
      domainError({ kind: "not_found" }),
    );
    await expect(p.evidenceByGateway.resolveCommits(asked, p.as(serviceCaller("gateway", newUid())))).rejects.toEqual(
      domainError({ reason: "service_not_allowed" }),
    );
    await expect(resolve(...Array.from({ length: 101 }, (): [string, string] => ["app", ""]))).rejects.toEqual(
      domainError({ reason: "repositories_count" }),
    );
  });
});

test("a repeated request, also a concurrent one, adopts the same pull request, which follows the branch", async () => {
  const sha = push("hello.txt", "hi\n");
  const answers = await Promise.all([open(sha), open(sha), open(sha)]);
  expect(new Set(answers.map(({ url }) => url)).size).toBe(1);
  expect(answers.filter(({ adopted }) => !adopted)).toHaveLength(1);
  const next = push("more.txt", "more\n");
  expect(await open(next)).toMatchObject({ adopted: true, url: answers[0]?.url });
  expect((await pageOf(answers[0]?.url ?? "")).files.map(({ path }) => path)).toEqual(["hello.txt", "more.txt"]);
  const { rows } = await p.database.sql.query("SELECT last_number FROM local_pull_request_counters");
  expect(rows).toEqual([{ last_number: 1 }]);
});

test("the diff remains when the base has merged the branch", async () => {
  const { url } = await open(push("hello.txt", "hi\n"));
  execFileSync("git", [
    "--git-dir",
    join(root, "acme/app.git"),
    "update-ref",
    "refs/heads/main",
    `refs/heads/${branch}`,
  ]);
  expect((await pageOf(url)).files).toMatchObject([{ path: "hello.txt", additions: 1 }]);
});

test("refuses branches that do not exist or are not the run's", async () => {
  const sha = push("hello.txt", "hi\n");
  await expect(open("0".repeat(40))).rejects.toEqual(domainError({ reason: "head_moved" }));
  await expect(open(sha, { repo: "other" })).rejects.toEqual(domainError({ reason: "repository_not_of_run" }));
  await expect(open(sha, { headBranch: "main" })).rejects.toEqual(domainError({ reason: "branch_not_of_run" }));
  await expect(open(sha, { title: " " })).rejects.toEqual(domainError({ reason: "pull_request_invalid" }));
  await expect(open(sha, { baseBranch: branch })).rejects.toEqual(domainError({ reason: "pull_request_refused" }));
  expect((await p.runs.listRuns({}, p.as(caller))).runs[0]?.artifacts).toEqual([]);
});

test("another team gets for the page what an unknown uid gets", async () => {
  const { url } = await open(push("hello.txt", "hi\n"));
  await expect(pageOf(url, aCaller())).rejects.toEqual(domainError({ reason: "pull_request_not_found" }));
  await expect(pageOf("x/0199c2f0-1111-7abc-8def-0123456789ab")).rejects.toEqual(
    domainError({ reason: "pull_request_not_found" }),
  );
});

test("the metrics service reads when a pull request's head was merged into its base branch", async () => {
  const { url } = await open(push("hello.txt", "hi\n"));
  const { teamUid } = caller.teams[0]!;
  const read = (over: object = {}) =>
    p.catalogueByMetrics.readCodeHost(
      { teamUid, kind: "local", repository: "acme/app", resource: "pull_request", number: 1, url, ...over },
      p.as(serviceCaller("metrics", newUid())),
    );
  const bodyOf = ({ body }: { body: Uint8Array }) => JSON.parse(new TextDecoder().decode(body));
  const before = await read();
  expect(bodyOf(before)).toMatchObject({ number: 1, repository: "acme/app", title: "Add hello", merged_at: null });
  expect(await read({ etag: before.etag })).toMatchObject({ outcome: "not_modified" });
  const bare = join(root, "acme/app.git");
  git(bare, "update-ref", "refs/heads/main", git(bare, "rev-parse", branch));
  const after = await read({ etag: before.etag });
  expect(after.outcome).toBe("found");
  expect(Date.parse(bodyOf(after).merged_at)).toBeGreaterThanOrEqual(Date.parse(bodyOf(after).created_at));
  await expect(read({ teamUid: newUid() })).rejects.toEqual(domainError({ reason: "code_host_not_connected" }));
  rmSync(bare, { recursive: true });
  expect(await read()).toMatchObject({ outcome: "not_found" });
});
