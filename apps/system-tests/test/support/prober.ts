import { randomUUID } from "node:crypto";
import type { Client } from "./client.ts";
import type { Operation } from "./samples.ts";
import type { SampleResources } from "./resources.ts";

/**
 * Maps a body or query field to the collection of the id in it. Add new fields here, so that their isolation is probed.
 */
const COLLECTION_OF_MEMBER: Readonly<Record<string, string>> = {
  team_uid: "team",
  filter_team_uid: "team",
  factory_uid: "factory",
  run_id: "runs",
  run_ids: "runs",
  parent_run_id: "runs",
  ancestor_run_id: "runs",
  conversation_id: "conversations",
  webhook_ids: "webhooks",
  delivery_uid: "deliveries",
  event_uid: "deliveries",
  automation_uid: "automations",
  automation_id: "automations",
  agent_uid: "identities",
  agent_identity_uid: "identities",
  environment_id: "environments",
  user_uid: "members",
  schedule_id: "schedules",
  agent_uids: "identities",
  agent_run_id: "runs",
  source_run_id: "runs",
  scorer_uid: "scorers",
  scorer_uids: "scorers",
  uid: "benchmarks",
  task_uid: "benchmark tasks",
  configuration_uid: "configurations",
  other_run_uid: "benchmark runs",
  historical_replay_run_uid: "benchmark runs",
};

/** Fields that are named like ids but do not identify a team's resources. */
const NO_IDS: ReadonlySet<string> = new Set([
  "model_id",
  "computer_use_model_id",
  "attachment_id",
  "default_runner_uid",
  "scope_uid",
  "client_id",
  "followup_id",
  "scorer_id",
]);

/**
 * Returns the collection of a body or query field that is an id; undefined for other fields. Throws if the field is an
 * unknown id.
 */
export function collectionOfMember(name: string): string | undefined {
  if (!/(^|_)u?ids?$/.test(name) || NO_IDS.has(name)) return undefined;
  const collection = COLLECTION_OF_MEMBER[name];
  if (!collection)
    throw new Error(
      `The probers do not know what "${name}" identifies. Add it to COLLECTION_OF_MEMBER or NO_IDS (support/prober.ts).`,
    );
  return collection;
}

/**
 * Returns the collection of each path parameter: the path segment before it. Tasks and runs of benchmarks are separate
 * collections.
 */
export function collectionsOfPath({ path, pathParameters }: Operation): { name: string; collection: string }[] {
  const parts = path.split("/");
  return pathParameters.map(({ name }) => {
    const at = parts.indexOf(`{${name}}`);
    const literal = parts[at - 1]!;
    return {
      name,
      collection:
        parts.indexOf("benchmarks") >= 0 && ["tasks", "runs"].includes(literal) ? `benchmark ${literal}` : literal,
    };
  });
}

/** Collections of the platform, equal for all teams: the versions of the definition format and the schemas of each. */
const EVERYBODYS: Readonly<Record<string, string>> = { schemas: "v1alpha1", "{schema_version}": "factory.schema.json" };

/** Returns whether resources of a collection are identified by names, which another team may use too. */
export const isName = (collection: string): boolean =>
  collection === "secrets" || Object.hasOwn(EVERYBODYS, collection);

export const pathWith = (path: string, ids: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(ids[name]!));

/** Returns a random id in the same format. */
export function randomLike(id: string): string {
  if (/^[0-9a-f]{8}-/.test(id)) return randomUUID();
  if (/^[A-Za-z0-9]{22}$/.test(id)) return randomUUID().replaceAll("-", "").slice(0, 22);
  return `${id}_${randomUUID().slice(0, 8).toUpperCase()}`;
}

export function idIn(resources: SampleResources, collection: string): string {
  const id = resources[collection] ?? EVERYBODYS[collection];
  if (id === undefined)
    throw new Error(
      `The probers know no resource in "${collection}". Create one in createSampleResources (support/resources.ts).`,
    );
  return id;
}

const VOLATILE = new Set([
  "as_of",
  "start_date",
  "end_date",
  "instance",
  "trace_id",
  "last_seen_at",
  "last_used_at",
  "download_url",
  "expires_at",
  "session_link",
  "connected_at",
  "last_checked_at",
]);

/** Returns a response without the values that differ between any two requests. */
export const lasting = ({ status, body }: { status: number; body: unknown }): string =>
  JSON.stringify({ status, body }, (key, value: unknown) => (VOLATILE.has(key) ? undefined : value));

/**
 * Returns what a client can use to distinguish two responses: all but request ids, timestamps, the ids it sent and the
 * ids of created resources.
 */
export const comparable = (answer: { status: number; body: unknown }, sent: readonly string[]): string =>
  sent
    .reduce((shown, id) => shown.replaceAll(id, "<id>"), lasting(answer))
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|"[A-Za-z0-9]{22}"/g, "<new id>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<now>");

/**
 * Returns everything of a team that GET operations without required parameters return. Two snapshots are equal if
 * nothing changed.
 */
export async function snapshot(
  api: Client,
  operations: readonly Operation[],
  resources: SampleResources,
): Promise<string[]> {
  const readable = operations.filter(
    ({ method, query, path }) =>
      method === "GET" &&
      !/openapi|\/transcript$|\/download$|\/content$|\/audit|\/metrics$/.test(path) &&
      query.every((one) => !one.isRequired),
  );
  const shown: string[] = [];
  for (const operation of readable) {
    const ids = Object.fromEntries(
      collectionsOfPath(operation).map(({ name, collection }) => [name, idIn(resources, collection)]),
    );
    shown.push(`${operation.path} ${lasting(await api.call("GET", pathWith(operation.path, ids)))}`);
  }
  return shown;
}
