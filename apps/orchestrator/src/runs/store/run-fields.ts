import { PROMPT_PREVIEW_CHARACTERS } from "@millwright/errors";
import type { RunRecord } from "../domain/run-record.ts";
import type { Run, RunStatus } from "../domain/run.ts";

type SqlType = "uuid" | "text" | "integer" | "bigint" | "boolean" | "jsonb";
type Inserted = Exclude<keyof RunRecord & keyof Run, "owner">;

/**
 * The members of a run that are inserted with it, with the types of their columns. The name of a column is that of its
 * member in snake case. A new member of a run is added to the type `Run` and here; INSERT and SELECT follow.
 */
const INSERTED = {
  uid: "uuid",
  rootRunUid: "uuid",
  parentRunUid: "uuid",
  retryOfRunUid: "uuid",
  depth: "integer",
  creatorType: "text",
  creatorUid: "text",
  executorUid: "text",
  agentUid: "uuid",
  agentName: "text",
  factoryUid: "uuid",
  definitionVersion: "bigint",
  environmentUid: "text",
  title: "text",
  prompt: "text",
  submittedPrompt: "text",
  mode: "text",
  interactive: "boolean",
  source: "text",
  origin: "text",
  causeKey: "text",
  executionLocation: "text",
  conversationUid: "uuid",
  triggerUrl: "text",
  schedule: "jsonb",
  agentConfig: "jsonb",
  agentSkill: "jsonb",
  metadata: "jsonb",
} as const satisfies Record<Inserted, SqlType>;

/** The members of a run that change after its creation. */
const CHANGED = ["sessionUid", "state", "version", "createdAt", "updatedAt", "startedAt", "finishedAt"] as const;

/** The columns that are no member of a run by themselves, with their values in a new row. */
const EXTRA_COLUMNS: Record<string, readonly [SqlType, (run: RunRecord) => unknown]> = {
  owner_type: ["text", ({ owner }) => owner.type],
  owner_uid: ["uuid", ({ owner }) => owner.uid],
  state: ["text", () => "QUEUED"],
  frozen: ["jsonb", ({ frozen }) => frozen],
  // Copies from the configuration, for filters of lists.
  config_name: ["text", ({ agentConfig }) => text(agentConfig["name"])],
  model_id: ["text", ({ agentConfig }) => text(agentConfig["model_id"])],
  skill_spec: ["text", ({ agentConfig }) => text(agentConfig["skill_spec"])],
};

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const columnOf = (member: string): string => member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const MEMBERS = Object.keys(INSERTED) as Inserted[];
const READ = [...MEMBERS, ...CHANGED];
const COLUMNS = MEMBERS.map((member) => [columnOf(member), member] as const);
const EXTRA_ENTRIES = Object.entries(EXTRA_COLUMNS);

/** The columns of a new row, with their types. */
export const NEW_ROW: Readonly<Record<string, SqlType>> = {
  ...Object.fromEntries(MEMBERS.map((member) => [columnOf(member), INSERTED[member]])),
  ...Object.fromEntries(Object.entries(EXTRA_COLUMNS).map(([column, [type]]) => [column, type])),
};

/** Returns the values of a new row by column; absent members are undefined. */
export function newRow(run: RunRecord): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [column, member] of COLUMNS) row[column] = run[member];
  for (const [column, [, value]] of EXTRA_ENTRIES) row[column] = value(run);
  return row;
}

/** Returns the columns of `runs r` for SELECT, named like the members of a run, each as `read` reads it. */
const selected = (read: (column: string) => string = (column) => `r.${column}`): string =>
  [
    ...READ.map((member) => `${read(columnOf(member))} AS "${member}"`),
    'r.owner_type AS "ownerType", r.owner_uid AS "ownerUid"',
    'r.status_message AS "statusMessage", r.error_code AS "errorCode", r.error_retryable AS "errorRetryable"',
  ].join(", ");

/**
 * Values from other tables. The last ones are subqueries with LIMIT because PostgreSQL plans EXISTS as scans of whole
 * tables here.
 */
const COMPUTED = `
  (SELECT coalesce(bool_or(x.sandbox_running AND x.state <> 'ENDED'), false) FROM executions x WHERE x.run_uid = r.uid) AS "isSandboxRunning",
  r.run_time_ms + coalesce((
    SELECT sum(greatest(extract(epoch FROM clock_timestamp() - x.claimed_at) * 1000, 0)) FROM executions x
     WHERE x.run_uid = r.uid AND x.state IN ('CLAIMED', 'RUNNING', 'STOPPING')), 0)::bigint AS "runTimeMs",
  (SELECT jsonb_build_object('until', x.debug_until, 'is_active', l.phase = 'RUNNING') FROM executions x JOIN leases l ON l.execution_id = x.id
    WHERE x.run_uid = r.uid AND x.state = 'DEBUG' AND r.state = 'FAILED' AND l.expires_at > clock_timestamp() AND x.debug_until > clock_timestamp() LIMIT 1) AS "debugWindow",
  coalesce((SELECT true FROM artifacts a WHERE a.run_uid = r.uid LIMIT 1), false) AS "hasArtifacts",
  coalesce((SELECT true FROM usage_rows u WHERE u.run_uid = r.uid LIMIT 1), false) AS "hasUsage"`;

/** Columns of a run, for `FROM runs r`; read the rows with `toRun`. */
export const RUN_COLUMNS = `${selected()}, ${COMPUTED}`;

const PROMPTS: readonly string[] = ["prompt", "submitted_prompt"];
const startOf = (column: string, characters: number): string => `left(r.${column}, ${characters})`;
const isLong = (column: string): string =>
  `coalesce(char_length(${startOf(column, PROMPT_PREVIEW_CHARACTERS + 1)}), 0) > ${PROMPT_PREVIEW_CHARACTERS}`;

/** The same columns for lists: reads only the beginning of prompts, regardless of their size. */
export const LISTED_RUN_COLUMNS = `${selected((column) =>
  PROMPTS.includes(column) ? startOf(column, PROMPT_PREVIEW_CHARACTERS) : `r.${column}`,
)}, ${COMPUTED}, ${PROMPTS.map(isLong).join(" OR ")} AS "isPromptTruncated"`;

/** The same columns for a run that is being inserted and has no rows in other tables yet. */
export const NEW_RUN_COLUMNS = `${selected()}, false AS "isSandboxRunning", 0 AS "runTimeMs", null::jsonb AS "debugWindow", false AS "hasArtifacts", false AS "hasUsage"`;

type Nullable<T> = { readonly [K in keyof T]-?: undefined extends T[K] ? Exclude<T[K], undefined> | null : T[K] };

export type RunRow = Nullable<
  Pick<Run, Inserted | (typeof CHANGED)[number] | "isSandboxRunning" | "runTimeMs" | "hasArtifacts" | "hasUsage">
> & {
  readonly ownerType: Run["owner"]["type"];
  readonly ownerUid: string;
  readonly statusMessage: string | null;
  readonly errorCode: string | null;
  readonly errorRetryable: boolean | null;
  readonly debugWindow: { readonly until: string; readonly is_active: boolean } | null;
  readonly isPromptTruncated?: boolean;
};

/** The members whose values are those of the row; null is an absent member. */
const COPIED = [...READ, "isSandboxRunning", "runTimeMs", "hasArtifacts", "hasUsage"] as const;

/** Returns the run of a row with RUN_COLUMNS, LISTED_RUN_COLUMNS or NEW_RUN_COLUMNS. */
export function toRun(row: RunRow): Run {
  const run: Record<string, unknown> = { owner: { type: row.ownerType, uid: row.ownerUid } };
  for (const member of COPIED) if (row[member] !== null) run[member] = row[member];
  if (row.statusMessage !== null) run["status"] = statusOf(row.statusMessage, row);
  if (row.isPromptTruncated) run["isPromptTruncated"] = true;
  if (row.debugWindow !== null)
    run["debugWindow"] = { until: new Date(row.debugWindow.until), isActive: row.debugWindow.is_active };
  return run as Run;
}

const statusOf = (message: string, { errorCode, errorRetryable: retryable }: RunRow): RunStatus => ({
  message,
  errorCode: errorCode ?? undefined,
  retryable: retryable ?? undefined,
});
