import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { VERBS } from "@millwright/caller";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { collectionsOfPath, idIn, pathWith, snapshot } from "./support/prober.ts";
import { runOf, script, startRun, succeeded } from "./support/runs.ts";
import { operationsOf, Samples, type Operation } from "./support/samples.ts";
import { aTeam, createSampleResources, teamOf, type SampleResources } from "./support/resources.ts";

/** One key per scope of one person, who owns a team with one resource of each kind and some personal resources. */
let platform: Deployment;
let owner: Client;
let sampleResources: { readonly team: SampleResources; readonly personal: SampleResources };
let operations: Operation[];
let samples: Samples;
let keys: { readonly scope: string; readonly api: Client }[];
let before: string[];

/** Operations that need no permission: what they return depends on the caller, or is public within the platform. */
const WITHOUT_PERMISSION: readonly string[] = [
  "DELETE /invitations/{invitationUid}",
  "DELETE /team/{uid}/keys/{keyUid}",
  "GET /agent/identities",
  "GET /agent/identities/{uid}",
  "GET /agent/models",
  "GET /factory-files/schemas",
  "GET /factory-files/schemas/{schema_version}",
  "GET /factory-files/schemas/{schema_version}/{document}",
  "GET /invitations",
  "GET /networking/egress-ranges",
  "GET /openapi.json",
  "GET /platform/compute-prices",
  "GET /platform/model-prices",
  "GET /team",
  "GET /team/{uid}",
  "GET /team/{uid}/keys",
  "GET /team/{uid}/members",
  "GET /whoami",
  "POST /agent/runs/{runId}/scores",
  "POST /factory-files/validate",
  "POST /invitations/{invitationUid}/accept",
  "POST /platform/compute-prices",
  "POST /platform/model-prices",
  "POST /team",
  "POST /team/{uid}/credits",
  "POST /team/{uid}/keys",
];

beforeAll(async () => {
  platform = await startPlatform({ workers: 1 });
  owner = await aTeam(await connect(platform), "scopes");
  const team = await createSampleResources(owner, platform);
  const run = await startRun(owner, script("say: Mine."), { team: false });
  await succeeded(owner, run);
  const schedule = await owner.post("/agent/schedules", {
    name: "mine",
    cron_schedule: "0 0 1 1 *",
    prompt: "Go.",
    team: false,
  });
  const environment = await owner.post("/agent/environments", { config: { name: "mine" }, team: false });
  const conversation = (await runOf(owner, run)).conversation_id;
  sampleResources = {
    team,
    personal: {
      ...team,
      runs: run,
      conversations: conversation,
      schedules: schedule.id,
      environments: environment.uid,
    },
  };
  operations = operationsOf(owner.document);
  samples = new Samples(owner.document);
  const uid = await teamOf(owner);
  keys = await Promise.all(
    VERBS.map(async (scope) => ({
      scope,
      api: owner.as((await owner.post(`/team/${uid}/keys`, { name: scope, scopes: [scope] })).api_key),
    })),
  );
  before = await snapshot(owner, operations, sampleResources.personal);
});
afterAll(() => platform?.remove());

const nameOf = ({ method, path }: Operation): string => `${method} ${path}`;

test("every operation declares the permission that it needs, or is known to need none", () => {
  const without = operations.filter(({ permissions }) => permissions.length === 0).map(nameOf);
  expect(without.toSorted()).toEqual(WITHOUT_PERMISSION.toSorted());
});

test("a key of a single scope gets nothing from any operation that needs another permission, of its team or personal", async () => {
  const found: string[] = [];
  const left = keys.flatMap(({ scope, api }) =>
    operations
      .filter(({ permissions }) => permissions.length > 0 && !permissions.includes(scope))
      .flatMap((operation) =>
        Object.values(sampleResources).map((resources) => ({ scope, api, operation, resources })),
      ),
  );
  const work = async (): Promise<void> => {
    for (let one = left.shift(); one; one = left.shift()) {
      const fault = await probe(one.api, one.operation, one.resources);
      if (fault) found.push(`${one.scope}: ${nameOf(one.operation)}: ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  expect([...new Set(found)]).toEqual([]);
});

test("none of these requests has changed anything", async () =>
  expect(await snapshot(owner, operations, sampleResources.personal)).toEqual(before));

/** Returns what is wrong with the response to a key without the permission; undefined if nothing is wrong. */
async function probe(api: Client, operation: Operation, resources: SampleResources): Promise<string | undefined> {
  const ids = Object.fromEntries(
    collectionsOfPath(operation).map(({ name, collection }) => [name, idIn(resources, collection)]),
  );
  const required = operation.query
    .filter(({ isRequired }) => isRequired)
    .map(({ name, schema }) => [name, String(samples.valid(schema))]);
  const query = new URLSearchParams(Object.fromEntries(required)).toString();
  const body = operation.body && {
    prompt: "p",
    ...(samples.valid(operation.body) as object),
    ...(resources === sampleResources.personal ? { team: false } : {}),
  };
  const { status, body: answer } = await api.call(
    operation.method,
    pathWith(operation.path, ids) + (query && `?${query}`),
    body ? { body } : {},
  );
  if ([400, 403, 404].includes(status)) return undefined;
  const text = JSON.stringify(answer);
  const shown = SHOWN.flatMap((collection) => (text.includes(resources[collection]!) ? [collection] : []));
  if (operation.method === "GET" && status === 200 && shown.length === 0) return undefined;
  return `${status} with ${shown.join(", ")}: ${text.slice(0, 200)}`;
}

/** Kinds of resources that a response without the permission must not contain. */
const SHOWN = [
  "factory",
  "runs",
  "tasks",
  "conversations",
  "artifacts",
  "environments",
  "grants",
  "code-hosts",
  "budgets",
  "webhooks",
  "automations",
  "deliveries",
  "schedules",
  "branches",
  "invitations",
  "scorers",
  "benchmarks",
  "benchmark tasks",
  "benchmark runs",
  "trials",
  "configurations",
];
