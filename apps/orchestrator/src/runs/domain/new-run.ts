import { invalidArgument, requireConfigWithin, requireTextWithin } from "@millwright/errors";
import type { RunUid } from "@millwright/ids";
import { JUDGE_SOURCE, type Judge } from "./judge.ts";
import type { LocalStart } from "./local-run.ts";
import { checkPinned, type PinnedRepository } from "./pinned-repository.ts";
import type { JsonObject, Owner, RunMode } from "./run.ts";
import { storable } from "./text.ts";

/** A file in the request of a new run. */
export type NewAttachment = { readonly fileName: string; readonly mimeType: string; readonly data: Uint8Array };

/** A requested run whose owner is resolved. */
export type NewRun = {
  readonly prompt?: string;
  readonly title?: string;
  /** AgentConfigSnapshot of the request. */
  readonly config: JsonObject;
  /**
   * AgentConfigSnapshot of the dispatcher (an automation or a benchmark): less specific than the request's, more
   * specific than the agent's.
   */
  readonly dispatcherConfig?: JsonObject;
  readonly skill?: string;
  /** "": `normal` for a new run, unchanged for an existing run that receives a message instead. */
  readonly mode: string;
  readonly owner: Owner;
  /** The user on whose behalf an agent creates the run; absent: the caller is the creator. */
  readonly creatorUid?: string;
  readonly agentUid?: string;
  readonly agentName?: string;
  readonly factoryUid?: string;
  readonly conversationUid?: string;
  /** The run is created only if this is the newest run of its conversation and has ended. */
  readonly afterRunUid?: string;
  readonly parentRunUid?: string;
  /** The run that it retries. */
  readonly retryOfRunUid?: RunUid;
  readonly interactive: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly source: string;
  readonly causeKey?: string;
  readonly origin?: string;
  readonly idempotencyKey?: string;
  readonly attachments: readonly NewAttachment[];
  /** Present: the client executes the run; absent: a worker does. */
  readonly local?: LocalStart;
  /** The schedule that creates the run: schedule_id, schedule_name, cron_schedule. */
  readonly schedule?: JsonObject;
  readonly triggerUrl?: string;
  /** Present: the run judges another run. */
  readonly judge?: Judge;
  /** The ended run whose last workspace it starts with. */
  readonly workspaceOfRunUid?: string;
  /** Repositories that replace those of its configuration. */
  readonly pinnedRepositories?: readonly PinnedRepository[];
  /** AgentConfigSnapshot by agent uid, for the descendants of the run. */
  readonly agentOverrides?: Readonly<Record<string, JsonObject>>;
};

const MODES: readonly string[] = ["normal", "plan", "orchestrate"];

/** The values of RunSourceType. */
export const SOURCES: readonly string[] = [
  "LINEAR",
  "API",
  "SLACK",
  "TEAMS",
  "LOCAL",
  "SCHEDULED_AGENT",
  "WEB_APP",
  "GITHUB_ACTION",
  "CLOUD_MODE",
  "CLI",
  "JIRA",
  "SELF_IMPROVEMENT",
  "GITHUB_WEBHOOK",
  "GITLAB_WEBHOOK",
  "AZURE_DEVOPS_WEBHOOK",
  "AUTOFIX",
  "RUN_SCORER",
  "ORCHESTRATION",
  "BENCHMARK_TRIAL",
  "CREATE_BENCHMARK_TASK",
  "CUSTOM_WEBHOOK",
];

/** Maximum length of a title in a request, in characters. */
const TITLE_MAX = 500;
const GENERATED_TITLE_MAX = 80;
const METADATA_KEYS_MAX = 20;
const METADATA_VALUE_BYTES_MAX = 256;
/** Dispatches store the URL of a ticket as metadata. Its limit is that of URLs. */
const TICKET_URL_BYTES_MAX = 2048;
const ATTACHMENTS_MAX = 5;
const ATTACHMENT_BYTES_MAX = 10_000_000;
/**
 * Maximum size of an event payload, which is attached as a whole to the run that it triggers and to retries of the run.
 * GitHub sends at most this much, and the webhook ingress accepts no more.
 */
const EVENT_PAYLOAD_BYTES_MAX = 25 * 1024 * 1024;

/**
 * Throws if the request is invalid, before anything is read from the database or another service.
 *
 * Errors (invalid_argument): prompt_required, mode_unknown, source_unknown, metadata_invalid, attachments_invalid,
 * judge_invalid, pinned_repository_invalid; text_too_large (too_large).
 */
export function checkNewRun(run: NewRun): void {
  const { prompt = "", skill, config, conversationUid } = run;
  const { skill_spec: spec, skills } = config;
  const hasSkill = Boolean(skill) || Boolean(spec) || (Array.isArray(skills) && skills.length > 0);
  if (prompt.trim() === "" && !hasSkill && conversationUid === undefined) {
    throw invalidArgument(
      "prompt_required",
      "A run requires a prompt, a skill or a conversation to continue. Send one of them.",
    );
  }
  requireTextWithin("The prompt", Buffer.byteLength(prompt));
  requireConfigWithin("The configuration of the run", config);
  if (!MODES.includes(modeOf(run)))
    throw invalidArgument("mode_unknown", `mode must be normal, plan or orchestrate (got "${run.mode}").`);
  if (!SOURCES.includes(run.source))
    throw invalidArgument("source_unknown", `source must be one of ${SOURCES.join(", ")} (got "${run.source}").`);
  const bytesMax =
    run.origin === "automation" || run.retryOfRunUid !== undefined ? EVENT_PAYLOAD_BYTES_MAX : ATTACHMENT_BYTES_MAX;
  if (run.attachments.length > ATTACHMENTS_MAX || run.attachments.some(({ data }) => data.length > bytesMax)) {
    throw invalidArgument(
      "attachments_invalid",
      `A run must have at most ${ATTACHMENTS_MAX} attachments of at most ${bytesMax} bytes each.`,
    );
  }
  checkMetadata(run.metadata);
  checkForScoring(run);
}

/**
 * Checks the members that only the scoring service sets. Errors: judge_invalid, pinned_repository_invalid
 * (invalid_argument).
 */
function checkForScoring({ judge, source, pinnedRepositories = [], workspaceOfRunUid }: NewRun): void {
  if (judge && source !== JUDGE_SOURCE)
    throw invalidArgument("judge_invalid", `A judge run must have the source ${JUDGE_SOURCE} (got "${source}").`);
  if (judge && judge.scorerUid === "") throw invalidArgument("judge_invalid", "A judge run must name its scorer.");
  checkPinned(pinnedRepositories);
  if (pinnedRepositories.length > 0 && workspaceOfRunUid)
    throw invalidArgument(
      "pinned_repository_invalid",
      "pinned_repositories and workspace_of_run_uid must not both be set. Remove one of them.",
    );
}

/**
 * Checks the number of metadata pairs, and the form of their keys and values. Errors: metadata_invalid
 * (invalid_argument).
 */
export function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  if (entries.length > METADATA_KEYS_MAX)
    throw invalidArgument(
      "metadata_invalid",
      `metadata must have at most ${METADATA_KEYS_MAX} keys (got ${entries.length}).`,
    );
  for (const [key, value] of entries) {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(key))
      throw invalidArgument(
        "metadata_invalid",
        `A metadata key must have 1 to 64 characters of A-Z a-z 0-9 . _ - (got "${key}").`,
      );
    const bytesMax = key === "ticket_url" ? TICKET_URL_BYTES_MAX : METADATA_VALUE_BYTES_MAX;
    if (value.includes("\0") || Buffer.byteLength(value) > bytesMax) {
      throw invalidArgument(
        "metadata_invalid",
        `The metadata value ${key} must have at most ${bytesMax} bytes and no NUL (got ${Buffer.byteLength(value)} bytes).`,
        { key },
      );
    }
  }
}

export const modeOf = (run: NewRun): RunMode => (run.mode || "normal") as RunMode;

/** Returns the requested title, or one generated from the first line of the prompt that has text. */
export function titleOf(run: NewRun, fallback: string): string {
  const given = run.title?.trim();
  if (given) return shorten(storable(given), TITLE_MAX);
  const lines = (run.prompt ?? "").split("\n").map((line) => line.replace(/^[#\s>*-]+/, "").trim());
  const line = lines.find((text) => text !== "" && !text.startsWith("```")) ?? fallback;
  return shorten(storable(line), GENERATED_TITLE_MAX);
}

function shorten(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`;
}
