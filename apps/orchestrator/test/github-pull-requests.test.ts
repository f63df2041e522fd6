import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { bearer, catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution, type ActiveExecution } from "./support/fake-worker.ts";

const SHA = "a".repeat(40);
let p: CatalogPlatform;
let caller: Caller;
let worker: Awaited<ReturnType<CatalogPlatform["worker"]>>;
let execution: ActiveExecution;
let branch: string;
/** Requests that the forge received, and its pull requests. */
let asked: { line: string; authorization: string | null }[];
let pulls: { number: number; head: string; base: string; title: string }[];

const shown = ({ number, head, base, title }: (typeof pulls)[number]) => ({
  number,
  title,
  state: "open",
  html_url: `https://forge.test/acme/app/pull/${number}`,
  head: { ref: head, sha: SHA },
  base: { ref: base },
});

/** A forge with GitHub's REST API and one repository. */
const forge = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
  const request = new Request(input, init);
  const { pathname } = new URL(request.url);
  asked.push({ line: `${request.method} ${pathname}`, authorization: request.headers.get("authorization") });
  if (pathname === "/api/v3/repos/acme/app") return Response.json({ default_branch: "trunk" });
  if (pathname.startsWith("/api/v3/repos/acme/app/git/ref/heads/")) return Response.json({ object: { sha: SHA } });
  if (pathname === "/api/v3/repos/acme/app/pulls/8")
    return Response.json({
      labels: [{ name: "bug" }, { name: "api" }],
      user: { login: "ada" },
      base: { ref: "trunk" },
    });
  if (pathname === "/api/v3/repos/acme/app/pulls/9")
    return Response.json({ labels: [{ name: "bug" }], user: { login: "bob" }, base: { ref: "trunk" } });
  if (pathname.endsWith("/files"))
    return Response.json([{ filename: "a.ts" }, { filename: pathname.includes("/8/") ? "b.ts" : "c.ts" }]);
  if (pathname.startsWith("/api/v3/repos/acme/app/pulls/"))
    return Response.json({ message: "Not Found" }, { status: 404 });
  if (request.method === "GET") return Response.json(pulls.map(shown));
  if (pulls.length > 0)
    return Response.json(
      { message: "Validation Failed", errors: [{ message: "A pull request already exists" }] },
      { status: 422 },
    );
  const { head, base, title } = (await request.json()) as { head: string; base: string; title: string };
  pulls.push({ number: 7, head, base, title });
  return Response.json(shown(pulls[0]!), { status: 201 });
};

beforeEach(async () => {
  [asked, pulls] = [[], []];
  p = await catalogPlatform({ fetch: forge });
  p.known.secrets.set("FORGE_TOKEN", "t0ken");
  caller = aCaller();
  const teamUid = caller.teams[0]!.teamUid;
  await p.catalogue.createCodeHost(
    {
      codeHost: {
        teamUid,
        name: "forge",
        kind: "github",
        baseUrl: "https://forge.test/api/v3",
        secretName: "FORGE_TOKEN",
        owners: ["acme"],
      },
    },
    p.as(caller),
  );
  const config = {
    github_repos: [
      { owner: "acme", repo: "app" },
      { owner: "elsewhere", repo: "lib" },
    ],
  };
  const { environment } = await p.catalogue.createEnvironment(
    { environment: { ownerType: "team", ownerUid: teamUid, config } },
    p.as(caller),
  );
  const run = await p.run(caller, { config: { environment_id: environment!.uid } });
  branch = `agent/${run.uid}`;
  worker = await p.worker();
  execution = await startExecution(p, worker);
});
afterEach(() => p.close());

const open = (over: Record<string, unknown> = {}) => {
  const lease = { executionId: BigInt(execution.ref.executionId), attempt: execution.ref.attempt };
  return p.workers.openPullRequest(
    { ...lease, owner: "acme", repo: "app", headBranch: branch, headSha: SHA, title: "Add", body: "", ...over },
    bearer(worker),
  );
};

test("the platform opens it with the team's token, against the default branch", async () => {
  expect(await open()).toMatchObject({ number: 7, url: "https://forge.test/acme/app/pull/7", adopted: false });
  expect(pulls).toEqual([{ number: 7, head: branch, base: "trunk", title: "Add" }]);
  expect(asked.every(({ authorization }) => authorization?.endsWith("t0ken"))).toBe(true);
  const [run] = (await p.runs.listRuns({}, p.as(caller))).runs;
  expect(run?.artifacts).toMatchObject([
    { artifactType: "PULL_REQUEST", data: { url: "https://forge.test/acme/app/pull/7", branch, status: "open" } },
  ]);
});

test("an existing one is adopted, and the forge is not called again for a known one", async () => {
  pulls.push({ number: 7, head: branch, base: "trunk", title: "by hand" });
  expect(await open()).toMatchObject({ number: 7, adopted: true });
  const before = asked.length;
  expect(await open()).toMatchObject({ number: 7, adopted: true });
  expect(asked).toHaveLength(before);
});

test("calls no forge if no connection serves the owner", async () => {
  await expect(open({ owner: "elsewhere", repo: "lib" })).rejects.toEqual(
    domainError({ reason: "code_host_not_connected", code: "integration_not_configured" }),
  );
  expect(asked).toEqual([]);
});

test("services read the filtered properties of all named pull requests in one request, with the connection's token", async () => {
  const [connection] = (await p.catalogue.listCodeHosts({}, p.as(caller))).codeHosts;
  const named = { teamUid: connection!.teamUid, codeHostUid: connection!.uid, repository: "acme/app", numbers: [8, 9] };
  const service = p.as(serviceCaller("factories", newUid()));
  expect(await p.catalogueByFactories.describePullRequests(named, service)).toMatchObject({
    labels: ["bug", "api"],
    authors: ["ada", "bob"],
    baseBranches: ["trunk"],
    paths: ["a.ts", "b.ts", "c.ts"],
  });
  expect(asked.every(({ authorization }) => authorization?.endsWith("t0ken"))).toBe(true);
  const refusal = (change: object) => p.catalogueByFactories.describePullRequests({ ...named, ...change }, service);
  await expect(refusal({ numbers: [404] })).rejects.toEqual(domainError({ reason: "pull_request_not_found" }));
  await expect(refusal({ numbers: [] })).rejects.toEqual(domainError({ reason: "pull_requests_invalid" }));
  await expect(refusal({ repository: "app" })).rejects.toEqual(domainError({ reason: "repository_invalid" }));
  for (const change of [{ codeHostUid: newUid() }, { codeHostUid: "x" }, { teamUid: newUid() }])
    await expect(refusal(change)).rejects.toEqual(domainError({ reason: "code_host_not_found" }));
  await expect(p.catalogue.describePullRequests(named, p.as(caller))).rejects.toEqual(
    domainError({ kind: "permission_denied", reason: "service_caller_required" }),
  );
});

test("the metrics service reads pages of the connection that serves the owner, with its token", async () => {
  const { teamUid } = caller.teams[0]!;
  const read = (over: object = {}) =>
    p.catalogueByMetrics.readCodeHost(
      { teamUid, kind: "github", repository: "acme/app", resource: "pull_request", number: 8, ...over },
      p.as(serviceCaller("metrics", newUid())),
    );
  const answer = await read();
  expect(answer.outcome).toBe("found");
  expect(JSON.parse(new TextDecoder().decode(answer.body))).toMatchObject({ user: { login: "ada" } });
  expect(asked).toEqual([{ line: "GET /api/v3/repos/acme/app/pulls/8", authorization: "Bearer t0ken" }]);
  expect(await read({ number: 404 })).toMatchObject({ outcome: "not_found" });
  await expect(read({ resource: "secrets" })).rejects.toEqual(domainError({ reason: "resource_invalid" }));
  for (const over of [{ repository: "elsewhere/lib" }, { kind: "gitlab" }, { kind: "local" }, { teamUid: newUid() }])
    await expect(read(over)).rejects.toEqual(domainError({ reason: "code_host_not_connected" }));
  await expect(p.catalogue.readCodeHost({ teamUid, kind: "github" }, p.as(caller))).rejects.toEqual(
    domainError({ kind: "permission_denied", reason: "service_caller_required" }),
  );
});
