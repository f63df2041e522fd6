import { invalidArgument, requireConfigWithin, requireTextWithin } from "@millwright/errors";
import type { RunUid } from "@millwright/ids";
import { JUDGE_SOURCE, type Judge } from "./judge.ts";
import type { LocalStart } from "./local-run.ts";
import { checkPinned, type PinnedRepository } from "./pinned-repository.ts";
import type { JsonObject, Owner, RunMode } from "./run.ts";
import { storable } from "./text.ts";

/** A file given to a new run. */
export type NewAttachment = { readonly fileName: string; readonly mimeType: string; readonly data: Uint8Array };

/** A run as asked for, with its owner settled. */
export type NewRun = {
  readonly prompt?: string;
  readonly title?: string;
  /** AgentConfigSnapshot of the request. */
  readonly config: JsonObject;
  /** That of what dispatches it: below the request's, above the agent's. */
  readonly dispatcherConfig?: JsonObject;
  readonly skill?: string;
  /** "": normal for a new run, unchanged for a run that gets a message instead. */
  readonly mode: string;
  readonly owner: Owner;
  /** The user on whose behalf an agent makes it; absent: its creator is whoever asks. */
  readonly creatorUid?: string;
  readonly agentUid?: string;
  readonly agentName?: string;
  readonly factoryUid?: string;
  readonly conversationUid?: string;
  /** It is made only while this is the newest run of its conversation, and has ended. */
  readonly afterRunUid?: string;
  readonly parentRunUid?: string;
  /** The run that it does again. */
  readonly retryOfRunUid?: RunUid;
  readonly interactive: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly source: string;
  readonly causeKey?: string;
  readonly origin?: string;
  readonly idempotencyKey?: string;
  readonly attachments: readonly NewAttachment[];
  /** Its client executes it; absent: a worker does. */
  readonly local?: LocalStart;
  /** The schedule that makes it: schedule_id, schedule_name, cron_schedule. */
  readonly schedule?: JsonObject;
  readonly triggerUrl?: string;
  /** It judges another run. */
  readonly judge?: Judge;
  /** The ended run whose last workspace it starts from. */
  readonly workspaceOfRunUid?: string;
  /** What it works on, instead of the repositories of its configuration. */
  readonly pinnedRepositories?: readonly PinnedRepository[];
  /** AgentConfigSnapshot by agent uid, for the runs below it. */
  readonly agentOverrides?: Readonly<Record<string, JsonObject>>;
};

const MODES: readonly string[] = ["normal", "plan", "orchestrate"];

/** RunSourceType (fields-runs §3.1). */
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

/** As long as requests may make it. */
const TITLE_MAX = 500;
const GENERATED_TITLE_MAX = 80;
const METADATA_KEYS_MAX = 20;
const METADATA_VALUE_BYTES_MAX = 256;
/** The address of a ticket is a URL, which dispatches store as metadata; its limit is that of URLs (fields-runs §6.4). */
const TICKET_URL_BYTES_MAX = 2048;
const ATTACHMENTS_MAX = 5;
const ATTACHMENT_BYTES_MAX = 10_000_000;
/** What started an automation is attached whole, also to a retry: GitHub sends at most so much, and the ingress takes no more. */
const EVENT_PAYLOAD_BYTES_MAX = 25 * 1024 * 1024;

/**
 * Refuses what no run can be made of, before anything else is asked.
 *
 * Errors (invalid_argument): prompt_required, mode_unknown, source_unknown, metadata_invalid, attachments_invalid, judge_invalid, pinned_repository_invalid; text_too_large (too_large).
 * Source: fields-runs §6.1, §3.5.
 */
export function checkNewRun(run: NewRun): void {
  const { prompt = "", skill, config, conversationUid } = run;
  const { skill_spec: spec, skills } = config;
  const hasSkill = Boolean(skill) || Boolean(spec) || (Array.isArray(skills) && skills.length > 0);
  if (prompt.trim() === "" && !hasSkill && conversationUid === undefined) {
    throw invalidArgument("prompt_required", "A run needs a prompt, a skill or a conversation to continue.");
  }
  requireTextWithin("The prompt", Buffer.byteLength(prompt));
  requireConfigWithin("The configuration of the run", config);
  if (!MODES.includes(modeOf(run))) throw invalidArgument("mode_unknown", "mode is one of normal, plan, orchestrate.");
  if (!SOURCES.includes(run.source)) throw invalidArgument("source_unknown", "The source is none of the known ones.");
  const bytesMax =
    run.origin === "automation" || run.retryOfRunUid !== undefined ? EVENT_PAYLOAD_BYTES_MAX : ATTACHMENT_BYTES_MAX;
  if (run.attachments.length > ATTACHMENTS_MAX || run.attachments.some(({ data }) => data.length > bytesMax)) {
    throw invalidArgument("attachments_invalid", `At most ${ATTACHMENTS_MAX} attachments of ${bytesMax} bytes each.`);
  }
  checkMetadata(run.metadata);
  checkForScoring(run);
}

/** What only the scoring service asks for. Errors: judge_invalid, pinned_repository_invalid (invalid_argument). */
function checkForScoring({ judge, source, pinnedRepositories = [], workspaceOfRunUid }: NewRun): void {
  if (judge && source !== JUDGE_SOURCE)
    throw invalidArgument("judge_invalid", `A judge run must have the source ${JUDGE_SOURCE} (got "${source}").`);
  if (judge && judge.scorerUid === "") throw invalidArgument("judge_invalid", "A judge run must name its scorer.");
  checkPinned(pinnedRepositories);
  if (pinnedRepositories.length > 0 && workspaceOfRunUid)
    throw invalidArgument(
      "pinned_repository_invalid",
      "pinned_repositories and workspace_of_run_uid exclude each other.",
    );
}

/** Source: fields-runs §3.5. */
export function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  if (entries.length > METADATA_KEYS_MAX)
    throw invalidArgument("metadata_invalid", `At most ${METADATA_KEYS_MAX} metadata keys.`);
  for (const [key, value] of entries) {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(key))
      throw invalidArgument("metadata_invalid", "A metadata key has 1 to 64 characters of A-Z a-z 0-9 . _ -");
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

/** The given title, or one made of the first line of the prompt that says something. */
export function titleOf(run: NewRun, fallback: string): string {
  const given = run.title?.trim();
  if (given) return shorten(storable(given), TITLE_MAX);
  const lines = (run.prompt ?? "").split("\n").map((line) => line.replace(/^[#\s>*-]+/, "").trim());
  const line = lines.find((one) => one !== "" && !one.startsWith("```")) ?? fallback;
  return shorten(storable(line), GENERATED_TITLE_MAX);
}

function shorten(text: string, max: number): string {
  const characters = Array.from(text);
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`;
}
