import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, script } from "./support/runs.ts";
import { aCodeHost, aFactory, aTeam, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let team: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  team = await teamOf(api);
});
afterAll(() => platform?.remove());

const ISSUE = JSON.stringify({
  action: "opened",
  issue: { number: 1, title: "Broken", body: "caf\u00e9" },
  repository: { full_name: "acme/shop" },
  sender: { login: "ada" },
});

/** A connection accepts 600 deliveries a minute, and retries count too. */
const IDS_OF_ONE = 60;

const github = async (url: string, secret: string, id: string = randomUUID(), body = ISSUE, event = "issues") =>
  api.fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": id,
      "x-hub-signature-256": await signForGitHub(secret, body),
    },
    body,
  });
const gitlab = (url: string, secret: string, key: string) =>
  api.fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-gitlab-event": "Note Hook",
      "x-gitlab-token": secret,
      "idempotency-key": key,
    },
    body: '{"object_kind":"note"}',
  });

/** Returns the whole delivery log, newest first. */
async function logOf(path: string): Promise<any[]> {
  const found: any[] = [];
  let query = "limit=100";
  for (;;) {
    const { deliveries, page_info: page } = await api.get(`${path}/webhook/deliveries?${query}`);
    found.push(...deliveries);
    if (!page.has_next_page) return found;
    query = `limit=100&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

describe("a code host", () => {
  test("delivers to the URL of its connection, which stores the payload", async () => {
    const { path, url, secret } = await aCodeHost(api, "github");
    const id = randomUUID();
    const response = await github(url, secret, id);
    expect([response.status, JSON.parse(response.text)]).toEqual([202, { delivery_id: id }]);
    const [entry] = await logOf(path);
    expect(entry).toMatchObject({ provider: "github", event: "issues", action: "opened", delivery_id: id });
    const accepted = (await logOf(path)).find(({ outcome }) => outcome === "accepted");
    const read = await api.get(`${path}/webhook/deliveries/${accepted.uid}`);
    expect(read).toMatchObject({
      label: "Accepted",
      size_bytes: Buffer.byteLength(ISSUE),
      headers: { "x-github-event": "issues", "x-github-delivery": id },
      payload: JSON.parse(ISSUE),
    });
    expect(JSON.stringify(read)).not.toContain(secret);
    expect((await api.get(`${path}/webhook`)).last_delivery_at).toEqual(expect.any(String));
  });
  test("is rejected with the old secret once it was changed, and gets 404 once its connection is removed", async () => {
    const { path, url, secret } = await aCodeHost(api, "gitlab");
    expect((await gitlab(url, secret, "k1")).status).toBe(202);
    await api.post(`${path}/webhook/rotate`, { secret: "another" });
    expect([(await gitlab(url, secret, "k2")).status, (await gitlab(url, "another", "k2")).status]).toEqual([401, 202]);
    await api.delete(path);
    const [removed, never] = [
      await gitlab(url, "another", "k3"),
      await gitlab(`${url.slice(0, -36)}${randomUUID()}`, "another", "k3"),
    ];
    expect([removed.status, never.status]).toEqual([404, 404]);
    expect((await api.call("GET", `${path}/webhook`, { isAbsent: true })).status).toBe(404);
  });
  test("of another team is indistinguishable from an unknown one", async () => {
    const { path } = await aCodeHost(api, "github");
    const theirs = await aTeam(api, `others-${randomUUID().slice(0, 8)}`);
    const others = await teamOf(theirs);
    for (const asked of [path, path.replace(team, others)]) {
      for (const [method, below] of [
        ["GET", "/webhook"],
        ["PUT", "/webhook"],
        ["DELETE", "/webhook"],
        ["POST", "/webhook/rotate"],
        ["GET", "/webhook/deliveries"],
      ] as const) {
        const answer = await theirs.call(method, `${asked}${below}`, { isAbsent: true, isRepeatable: true });
        expect([method, answer.status]).toEqual([method, 404]);
      }
    }
  });
  test("accepts one of several concurrent copies, and logs every delivery that got a response", async () => {
    for (let left = Number(process.env["MILLWRIGHT_IDENTITIES"] ?? 30); left > 0; left -= IDS_OF_ONE) {
      const { path, url, secret } = await aCodeHost(api, "github");
      const ids = Array.from({ length: Math.min(left, IDS_OF_ONE) }, () => randomUUID());
      for (const id of ids) {
        const answers = await Promise.all(Array.from({ length: 4 }, () => github(url, secret, id)));
        expect(answers.map(({ status, text }) => [status, JSON.parse(text).delivery_id])).toEqual(
          Array(4).fill([202, id]),
        );
      }
      const log = await logOf(path);
      const countOf = (id: string, outcome: string) =>
        log.filter((entry) => entry.delivery_id === id && entry.outcome === outcome).length;
      for (const id of ids) {
        expect([id, countOf(id, "accepted")]).toEqual([id, 1]);
        // There are more duplicates if a response was lost and the delivery was sent again.
        expect(countOf(id, "duplicate")).toBeGreaterThanOrEqual(3);
      }
    }
  });
});

describe("published payloads of GitHub", () => {
  const published = createRequire(import.meta.url)("@octokit/webhooks-examples") as { name: string; examples: any[] }[];
  const exampleOf = (name: string, isWanted: (payload: any) => boolean): any =>
    published.find((one) => one.name === name)!.examples.find(isWanted);
  let forge: Server;
  const asked: string[] = [];
  let isAway = false;

  /** GitHub's REST API, reduced to pull requests. */
  beforeAll(async () => {
    forge = createServer((request, response) => {
      if (isAway) {
        request.socket.destroy();
        return;
      }
      asked.push(`${request.method} ${request.url?.split("?")[0]} ${request.headers.authorization}`);
      const isFiles = request.url?.includes("/files") === true;
      response
        .setHeader("content-type", "application/json")
        .end(
          JSON.stringify(
            isFiles
              ? [{ filename: "api/v1/a.ts" }]
              : { labels: [{ name: "agent" }], user: { login: "ada" }, base: { ref: "master" } },
          ),
        );
    });
    await new Promise<void>((resolve) => forge.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => forge.close().closeAllConnections());

  test("start runs by their content, and by what the code host returns", async () => {
    await api.put(`/team/${team}/secrets/FORGE_TOKEN`, { value: "t0ken" });
    const { path, url, secret } = await aCodeHost(api, "github", {
      base_url: `http://127.0.0.1:${(forge.address() as AddressInfo).port}`,
      secret_name: "FORGE_TOKEN",
    });
    const factory = await aFactory(api, definitionFiles("No script here."));
    const automation = async (name: string, event: string, filter: object): Promise<string> =>
      (
        await api.post(`/factory/${factory}/automations`, {
          name,
          prompt: script("say: Done."),
          triggers: [{ provider: "github", event, filter }],
        })
      ).uid;
    const ofApi = await automation("api", "pull_request_opened", { paths: ["api/**"], base_branches: ["master"] });
    const elsewhere = await automation("elsewhere", "pull_request_opened", { paths: { not_in: ["api/**"] } });
    const green = await automation("green", "check_suite_completed", {
      conclusions: ["success"],
      labels: ["Agent"],
      repos: ["codertocat/hello-world"],
    });
    /** Returns for each automation with a trigger on the event whether it fired for the delivery. */
    const firedBy = async (name: string, payload: any, count: number): Promise<Record<string, boolean>> => {
      const id = randomUUID();
      expect((await github(url, secret, id, JSON.stringify(payload), name)).status).toBe(202);
      const { uid } = (await logOf(path)).find((one) => one.delivery_id === id && one.outcome === "accepted");
      const decisions: any[] = await eventually(
        async () => {
          const { status, body } = await api.call("GET", `/factory/${factory}/decisions?event_uid=${uid}`);
          return (
            status === 200 &&
            body.decisions.filter(({ outcome }: any) => outcome !== "pending").length === count &&
            body.decisions
          );
        },
        { timeoutMs: RUN_TIMEOUT_MS },
      );
      return Object.fromEntries(decisions.map((one) => [one.automation_uid, one.outcome === "fired"]));
    };
    expect(
      await firedBy(
        "pull_request",
        exampleOf("pull_request", ({ action }) => action === "opened"),
        2,
      ),
    ).toEqual({ [ofApi]: true, [elsewhere]: false });
    expect(
      await firedBy(
        "check_suite",
        exampleOf(
          "check_suite",
          ({ action, check_suite: suite }) => action === "completed" && suite.pull_requests.length > 0,
        ),
        1,
      ),
    ).toEqual({ [green]: true });
    expect(
      asked.every((line) => /^GET \/repos\/Codertocat\/Hello-World\/pulls\/\d+(\/files)? Bearer t0ken$/.test(line)),
    ).toBe(true);
    expect(asked.length).toBeGreaterThanOrEqual(4);
  });

  test("delay only the automation whose filter needs an unreachable code host, until it responds", async () => {
    const { path, url, secret } = await aCodeHost(api, "github", {
      base_url: `http://127.0.0.1:${(forge.address() as AddressInfo).port}`,
      secret_name: "FORGE_TOKEN",
    });
    const factory = await aFactory(api, definitionFiles("No script here."));
    const automation = async (name: string, filter: object): Promise<string> =>
      (
        await api.post(`/factory/${factory}/automations`, {
          name,
          prompt: script("say: Done."),
          triggers: [{ provider: "github", event: "pull_request_opened", filter }],
        })
      ).uid;
    const [needs, sibling] = [
      await automation("needs", { paths: ["api/**"] }),
      await automation("sibling", { base_branches: ["master"] }),
    ];
    isAway = true;
    const id = randomUUID();
    await github(
      url,
      secret,
      id,
      JSON.stringify(exampleOf("pull_request", ({ action }) => action === "opened")),
      "pull_request",
    );
    const { uid } = (await logOf(path)).find((one) => one.delivery_id === id && one.outcome === "accepted");
    const decided = (outcomes: object): Promise<any[]> =>
      eventually(
        async () => {
          const { status, body } = await api.call("GET", `/factory/${factory}/decisions?event_uid=${uid}`);
          if (status !== 200) return false;
          const found = Object.fromEntries(body.decisions.map((one: any) => [one.automation_uid, one.outcome]));
          return Object.entries(outcomes).every(([one, outcome]) => found[one] === outcome) && body.decisions;
        },
        { timeoutMs: RUN_TIMEOUT_MS },
      );
    const waiting = (await decided({ [needs]: "pending", [sibling]: "fired" })).find(
      (one) => one.automation_uid === needs,
    );
    expect(waiting).toMatchObject({ run_id: null, next_attempt_at: expect.any(String) });
    isAway = false;
    const fired = (await decided({ [needs]: "fired", [sibling]: "fired" })).find((one) => one.automation_uid === needs);
    expect(fired).toMatchObject({ run_id: expect.any(String), next_attempt_at: null });
  });

  test("reach the run completely although they exceed the attachment limit of clients", async () => {
    const { path, url, secret } = await aCodeHost(api, "github");
    const factory = await aFactory(api, definitionFiles("No script here."));
    await api.post(`/factory/${factory}/automations`, {
      name: "large",
      prompt: script("say: Done."),
      triggers: [{ provider: "github", event: "pull_request_opened" }],
    });
    const payload = JSON.stringify({
      ...exampleOf("pull_request", ({ action }) => action === "opened"),
      padding: "x".repeat(11_000_000),
    });
    expect((await github(url, secret, randomUUID(), payload, "pull_request")).status).toBe(202);
    const { uid } = (await logOf(path)).find(({ outcome }) => outcome === "accepted");
    const [decision] = await eventually(
      async () => {
        const { decisions } = await api.get(`/factory/${factory}/decisions?event_uid=${uid}`);
        return decisions.length === 1 && decisions[0].outcome !== "pending" && decisions;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect([decision.outcome, decision.explanation]).toEqual(["fired", expect.any(String)]);
    expect((await api.get(`/agent/runs/${decision.run_id}`)).prompt).toContain(
      `payload: event-payload.json (${Buffer.byteLength(payload)} bytes`,
    );
  });

  test("are replayed for one automation, as a dry run or not, recorded in the audit log, and not for other teams", async () => {
    const { path, url, secret } = await aCodeHost(api, "github");
    const [factory, elsewhere] = [
      await aFactory(api, definitionFiles("No script here.")),
      await aCodeHost(api, "github"),
    ];
    const automationOn = (branch: string) => ({
      name: branch,
      enabled: true,
      prompt: script("say: Done."),
      triggers: [{ provider: "github", event: "pull_request_opened", filter: { base_branches: [branch] } }],
    });
    const { uid: automation } = await api.post(`/factory/${factory}/automations`, automationOn("release"));
    expect(
      (
        await github(
          url,
          secret,
          randomUUID(),
          JSON.stringify(exampleOf("pull_request", ({ action }) => action === "opened")),
          "pull_request",
        )
      ).status,
    ).toBe(202);
    const { uid } = (await logOf(path)).find(({ outcome }) => outcome === "accepted");
    const at = (of: string, delivery = uid) => `${of}/webhook/deliveries/${delivery}/replay`;
    const body = { factory_uid: factory, automation_uid: automation };
    const replay = (more: object = {}) => api.post(at(path), { ...body, ...more });
    const decided = (count: number) =>
      eventually(
        async () => {
          const { decisions } = await api.get(`/factory/${factory}/decisions?event_uid=${uid}`);
          return (
            decisions.length === count && decisions.every(({ outcome }: any) => outcome !== "pending") && decisions
          );
        },
        { timeoutMs: RUN_TIMEOUT_MS },
      );
    expect(await decided(1)).toMatchObject([{ outcome: "not_matched", event_uid: uid }]);
    expect(await replay({ dry_run: true })).toMatchObject({
      would_trigger: false,
      label: "Would not trigger",
      decision: { outcome: "not_matched", checks: [{ failed: ["base_branches"] }] },
    });
    await api.put(`/factory/${factory}/automations/${automation}`, automationOn("master"));
    expect(await replay({ dry_run: true })).toMatchObject({ would_trigger: true, label: "Would trigger" });
    await decided(1);
    expect(await replay()).toMatchObject({
      would_trigger: true,
      decision: { provider: "github", event: "replayed", subject: { code_host_uid: path.split("/").at(-1) } },
    });
    const [fired] = (await decided(2)).filter(({ outcome }: any) => outcome === "fired");
    const run = await api.get(`/agent/runs/${fired.run_id}`);
    expect([run.source, run.prompt.includes("[github event]")]).toEqual(["GITHUB_WEBHOOK", true]);
    await eventually(
      async () => {
        const { entries } = await api.get(`/team/${team}/audit?limit=100`);
        return (
          entries.filter(
            (one: any) => one.entity_uid === automation && one.type === "millwright.automation.run_requested.v1",
          ).length >= 3
        ); // There are more events if a request was retried.
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );

    const stranger = await aTeam(api, `others-${randomUUID().slice(0, 8)}`);
    const others = await teamOf(stranger);
    const theirs = { ...body, factory_uid: await aFactory(stranger, definitionFiles("No script here.")) };
    const refused = async (client: Client, to: string, sent: object) => {
      const { status, body: problem } = await client.call("POST", to, { body: sent, isAbsent: true });
      return [status, problem.reason];
    };
    expect(await refused(stranger, at(path), body)).toEqual(
      await refused(stranger, at(path).replace(team, randomUUID()), body),
    );
    expect(await refused(stranger, at(path.replace(team, others)), theirs)).toEqual([404, "code_host_not_found"]);
    expect(await refused(api, at(path), theirs)).toEqual([404, "factory_not_found"]);
    expect(await refused(api, at(elsewhere.path), body)).toEqual([404, "delivery_not_found"]);
    expect(await refused(api, at(path, randomUUID()), body)).toEqual([404, "delivery_not_found"]);
    expect(await decided(2)).toHaveLength(2);
  });
});
