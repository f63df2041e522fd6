import type { z } from "zod";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { isoDuration, isoTime } from "../formats/json-values.ts";
import type { FindProfiles, Profile } from "../identity/profiles.ts";
import type { ArtifactItem } from "./artifact-schemas.ts";
import type { RunItem } from "./run-schemas.ts";

export type RunJson = z.input<typeof RunItem>;
type Links = { sessionLink(run: orchestrator.Run): string };

/**
 * Returns the public records of runs with the profiles of their creators and executors. Reads all profiles in one
 * call, without the caller's own profile, which is known.
 */
export async function runRecords(
  runs: readonly orchestrator.Run[],
  findProfiles: FindProfiles,
  links: Links,
  caller: Caller,
): Promise<RunJson[]> {
  const profiles = new Map(ownProfile(caller));
  const others = new Set(
    runs.flatMap((run) => [run.creatorUid, run.executorUid]).filter((uid) => uid !== "" && !profiles.has(uid)),
  );
  if (others.size > 0) for (const [uid, profile] of await findProfiles([...others])) profiles.set(uid, profile);
  return runs.map((run) => runRecord(run, profiles, links));
}

/** Returns the caller's profile as its credential states it, or nothing if the credential does not. */
function ownProfile({ principal: { type, uid, displayName, email } }: Caller): [string, Profile][] {
  if (displayName === undefined) return [];
  if (type === "user" && email !== undefined) return [[uid, { type: "user", uid, display_name: displayName, email }]];
  return type === "agent" ? [[uid, { type: "service_account", uid, display_name: displayName }]] : [];
}

function runRecord(run: orchestrator.Run, profiles: ReadonlyMap<string, Profile>, links: Links): RunJson {
  return {
    run_id: run.uid,
    task_id: run.uid,
    root_run_id: run.rootRunUid,
    title: run.title,
    state: run.state as RunJson["state"],
    prompt: run.prompt,
    created_at: isoTime(run.createdAt!),
    updated_at: isoTime(run.updatedAt!),
    started_at: run.startedAt ? isoTime(run.startedAt) : null,
    finished_at: run.finishedAt ? isoTime(run.finishedAt) : null,
    run_time: isoDuration(Number(run.runTimeMs)),
    source: run.source as NonNullable<RunJson["source"]>,
    execution_location: run.executionLocation as "LOCAL" | "REMOTE",
    scope: { type: run.ownerType === "team" ? "Team" : "User", uid: run.ownerUid },
    metadata: run.metadata,
    conversation_id: run.conversationUid,
    session_link: links.sessionLink(run),
    is_sandbox_running: run.isSandboxRunning,
    is_run_type_cancellable: run.isRunTypeCancellable,
    debug_agent_available: run.debugAgentAvailable,
    artifacts: run.artifacts.map(artifactItem),
    prompt_truncated: run.promptTruncated ? true : undefined,
    ...omitUndefined({
      parent_run_id: run.parentRunUid,
      retry_of_run_id: run.retryOfRunUid,
      status_message: run.statusMessage && statusMessage(run.statusMessage),
      submitted_prompt: run.submittedPrompt,
      creator: profiles.get(run.creatorUid),
      executor: profiles.get(run.executorUid),
      agent_config: run.agentConfig,
      agent_skill: run.agentSkill,
      factory_uid: run.factoryUid,
      schedule: run.schedule && {
        schedule_id: run.schedule.scheduleId,
        schedule_name: run.schedule.scheduleName,
        cron_schedule: run.schedule.cronSchedule,
      },
      session_id: run.sessionUid,
      trigger_url: run.triggerUrl,
      request_usage: run.requestUsage,
    }),
  };
}

const statusMessage = ({
  message,
  errorCode,
  retryable,
  sessionDebugUntil,
  debugAgentActive,
}: orchestrator.StatusMessage) => ({
  message,
  ...omitUndefined({
    error_code: errorCode,
    retryable,
    session_debug_until: sessionDebugUntil && isoTime(sessionDebugUntil),
    debug_agent_active: debugAgentActive,
  }),
});

/** Returns the public record of an artifact of a run. */
export const artifactItem = ({
  artifactType,
  createdAt,
  data = {},
}: orchestrator.Artifact): z.input<typeof ArtifactItem> =>
  ({ artifact_type: artifactType, created_at: isoTime(createdAt!), data }) as z.input<typeof ArtifactItem>;
