import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository } from "@millwright/test-platform";
import { connect, type Client } from "./client.ts";
import { RUN_TIMEOUT_MS, script, succeeded } from "./runs.ts";

/** Returns a definition with a foreman and a helper. It has no repositories, so runs clone nothing. */
export const definitionFiles = (foreman: string, helper = script("say: Done.")) => [
  {
    path: "factory.yaml",
    content: "schemaVersion: v1alpha1\nname: Works\nrepositories: []\nagentDefaults:\n  model: auto\n",
  },
  {
    path: "agents/foreman/agent.md",
    content: `---\ndescription: Receives work.\nagentType: FOREMAN\n---\n\nYou are the foreman.\n\n${foreman}\n`,
  },
  {
    path: "agents/helper/agent.md",
    content: `---\ndescription: Helps.\nagentType: IMPLEMENT\n---\n\nYou help.\n\n${helper}\n`,
  },
];

/** Returns the files as a map from path to content, the format of `bareRepository`. */
export const treeOf = (files: readonly { path: string; content: string }[]): Record<string, string> =>
  Object.fromEntries(files.map(({ path, content }) => [path, content]));

/** Creates a factory and applies its definition. */
export async function aFactory(
  api: Client,
  files: { path: string; content: string }[],
  fields: object = {},
): Promise<string> {
  const { uid } = await api.post("/factory", { name: "Works", ...fields });
  await api.put(`/factory/${uid}/source`, { files });
  const { state } = await applied(api, uid);
  if (state !== "APPLIED") throw new Error(`The definition is ${state}.`);
  return uid;
}

/**
 * Waits until all services have applied a factory's source, which may be after the response to `apply`. Returns the
 * source.
 */
export const settled = (api: Client, factory: string): Promise<any> =>
  eventually(
    async () => {
      const now = await api.get(`/factory/${factory}/source`);
      return now.state !== "APPLYING" && now;
    },
    { timeoutMs: RUN_TIMEOUT_MS },
  );

/** Applies a factory's source, waits until all services have applied it and returns it. */
export async function applied(api: Client, factory: string, body: object = {}): Promise<any> {
  await api.post(`/factory/${factory}/source/apply`, body);
  return settled(api, factory);
}

/** Creates a team. Returns a client with the key of its owner. */
export async function aTeam(api: Client, name: string): Promise<Client> {
  const { api_key: key } = await api.post("/team", { name, owner_email: `${name}-${randomUUID()}@example.com` });
  return api.as(key);
}

/** A code host connection with a public webhook URL: its uid, API path, webhook URL and webhook secret. */
export type CodeHost = { uid: string; path: string; url: string; secret: string };

/**
 * Connects the client's team to a code host. The test chooses the webhook secret, because a generated secret is
 * returned only once and the response may be lost.
 */
export async function aCodeHost(
  api: Client,
  kind: "github" | "gitlab",
  {
    secret = randomUUID(),
    webhook = {},
    ...more
  }: { secret?: string; webhook?: object; [field: string]: unknown } = {},
): Promise<CodeHost> {
  const hosts = `/team/${await teamOf(api)}/code-hosts`;
  const { uid } = await api.post(hosts, { name: randomUUID(), kind, owners: [randomUUID()], ...more });
  const path = `${hosts}/${uid}`;
  const { ingress_url: url } = await api.put(`${path}/webhook`, webhook);
  await api.post(`${path}/webhook/rotate`, { secret });
  return { uid, path, url, secret };
}

export const teamOf = async (api: Client): Promise<string> => (await api.get("/whoami")).teams[0].uid;

const uidOf = (artifacts: any[], type: string): string =>
  artifacts.find((one) => one.artifact_type === type).data.artifact_uid;

const RULE = { checks: [{ kind: "regex", target: "final_message", pattern: "." }], pass: "pass", fail: "fail" };

/** Creates a scorer that scores no run automatically, and scores one run with it. */
async function aScorer(api: Client, factory: string, run: string): Promise<string> {
  const labels = [
    { value: "pass", score: 1 },
    { value: "fail", score: 0 },
  ];
  const { uid } = await api.post(`/factory/${factory}/scorers`, {
    name: "Answers",
    scope_mode: "all_agents",
    allowed_classifications: labels,
    threshold: 0.5,
    sampling_rate: 0,
    rule: RULE,
  });
  await api.post(`/factory/${factory}/scorers/${uid}/dispatch`, { run_ids: [run] });
  await eventually(
    async () => (await api.get(`/factory/${factory}/scorers/${uid}/results`)).results[0]?.status === "scored",
    { timeoutMs: RUN_TIMEOUT_MS },
  );
  return uid;
}

/** Creates a benchmark with one task and waits until it has completed. */
async function aBenchmark(api: Client, factory: string): Promise<SampleResources> {
  const { agents } = await api.get(`/agent/identities?factory_uid=${factory}`);
  const helper = agents.find((one: any) => one.name === "helper");
  const base = `/factory/${factory}/benchmarks`;
  const suite = await api.post(base, {
    name: "Core",
    agent_uid: helper.uid,
    factory_agent_type: "helper",
    configurations: [{ role: "baseline", display_name: "Today" }],
  });
  const task = await api.post(`${base}/${suite.uid}/tasks`, {
    title: "Answer",
    prompt: script("say: Done."),
    success_criteria: "There is an answer.",
    rule: RULE,
  });
  const { uid: run } = await api.post(`${base}/${suite.uid}/runs`, { repetition_count: 1 });
  await eventually(async () => (await api.get(`${base}/${suite.uid}/runs/${run}`)).state === "completed", {
    timeoutMs: RUN_TIMEOUT_MS,
  });
  const [trial] = (await api.get(`${base}/${suite.uid}/runs/${run}/trials`)).data;
  return {
    benchmarks: suite.uid,
    "benchmark tasks": task.uid,
    "benchmark runs": run,
    trials: trial.uid,
    configurations: suite.configurations[0].uid,
  };
}

/** Ids of one resource of each kind of a team, by the name of their collection in paths. */
export type SampleResources = Readonly<Record<string, string>>;

/** Creates one resource of each kind in the client's team. */
export async function createSampleResources(api: Client, platform: Deployment): Promise<SampleResources> {
  const team = await teamOf(api);
  const root = platform.path("repositories", team);
  await mkdir(root, { recursive: true });
  const factory = await aFactory(
    api,
    definitionFiles(
      script(
        "write: {path: out.txt, content: secret}",
        "artifact: out.txt",
        "write: {path: dot.gif, content: GIF89a}",
        "screenshot: dot.gif",
      ),
    ),
  );
  const { run_id: run } = await api.post(`/factory/${factory}/runs`, { prompt: "Go." });
  const { conversation_id: conversation, artifacts } = await succeeded(api, run);
  const [task] = (await api.get(`/factory/${factory}/tasks`)).tasks;
  const environment = await api.post("/agent/environments", { config: { name: "env" } });
  const { principal } = await api.get("/whoami");
  const grant = await api.post(`/agent/environments/${environment.uid}/grants`, { user_uid: principal.uid });
  const identity = await api.post("/agent/identities", { name: "extra" });
  const { key } = await api.post(`/team/${team}/keys`, { name: "second" });
  // An invitation needs the email address of a person with a personal key.
  const guest = await aTeam(await connect(platform), "guest");
  const invitation = await api.post(`/team/${team}/invitations`, {
    email: (await guest.get("/whoami")).principal.email,
  });
  await api.put(`/team/${team}/secrets/TOKEN`, { value: "hidden" });
  await api.post(`/team/${team}/code-hosts`, { name: "local", kind: "local", root });
  const codeHost = await api.post(`/team/${team}/code-hosts`, { name: "hub", kind: "github", owners: ["nobody"] });
  await api.put(`/team/${team}/code-hosts/${codeHost.uid}/webhook`, {});
  const webhook = await api.post(`/factory/${factory}/webhooks`, { name: "hook" });
  await api.fetch(webhook.ingress_url, {
    method: "POST",
    headers: { authorization: `Bearer ${webhook.secret}` },
    body: "{}",
  });
  const [delivery] = (await api.get(`/factory/${factory}/webhooks/${webhook.uid}/deliveries`)).deliveries;
  const automation = await api.post(`/factory/${factory}/automations`, {
    name: "auto",
    prompt: "Go.",
    triggers: [{ provider: "webhook", event: "received", filter: { webhook_ids: [webhook.uid] } }],
  });
  const repositoryUrl = bareRepository(root, "acme", "factory", treeOf(definitionFiles("Go.")));
  await api.put(`/factory/${factory}/source`, { repository_url: repositoryUrl });
  const branch = await eventually(async () => {
    const [production] = (await api.get(`/factory/${factory}/branches`)).branches;
    return production.registered_head_sha !== null && production;
  });
  const scored = await aScorer(api, factory, run);
  const benchmark = await aBenchmark(api, factory);
  const budget = await api.post(`/team/${team}/budgets`, {
    scope: "factory",
    scope_uid: factory,
    period: "month",
    limit_usd: 1000,
  });
  const schedule = await api.post("/agent/schedules", { name: "yearly", cron_schedule: "0 0 1 1 *", prompt: "Go." });
  return {
    team,
    factory,
    runs: run,
    tasks: task.uid,
    conversations: conversation,
    // No run opens a pull request: no resource has this id.
    "pull-requests": randomUUID(),
    artifacts: uidOf(artifacts, "FILE"),
    screenshots: uidOf(artifacts, "SCREENSHOT"),
    environments: environment.uid,
    grants: grant.uid,
    identities: identity.uid,
    keys: key.uid,
    invitations: invitation.uid,
    secrets: "TOKEN",
    "code-hosts": codeHost.uid,
    budgets: budget.uid,
    members: principal.uid,
    webhooks: webhook.uid,
    automations: automation.uid,
    deliveries: delivery.uid,
    schedules: schedule.id,
    branches: branch.uid,
    scorers: scored,
    ...benchmark,
  };
}
