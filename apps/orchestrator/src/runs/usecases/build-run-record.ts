import { omitUndefined } from "@millwright/json";
import { actorOf, type Caller } from "@millwright/caller";
import { newUid, type RunUid } from "@millwright/ids";
import { checkMetadata, modeOf, titleOf } from "../domain/new-run.ts";
import type { RunParent } from "../domain/run-parent.ts";
import type { RunRecord } from "../domain/run-record.ts";

import { storable } from "../domain/text.ts";
import type { PreparedRun } from "./prepare-runs.ts";

/** Returns the run to insert for a prepared request. Errors: metadata_invalid. */
export function buildRunRecord(
  caller: Caller,
  { request, resolved, causeKey, conversationUid, files }: PreparedRun,
  parent: RunParent | undefined,
): RunRecord {
  const uid = newUid<RunUid>();
  const prompt = storable(request.prompt ?? "");
  const metadata = { ...parent?.metadata, ...request.metadata };
  checkMetadata(metadata);
  const actor = actorOf(caller);
  const { frozen } = resolved;
  return {
    uid,
    rootRunUid: parent?.rootRunUid ?? uid,
    depth: parent ? parent.depth + 1 : 0,
    owner: request.owner,
    creatorType: request.creatorUid === undefined ? actor.type : "user",
    creatorUid: request.creatorUid ?? actor.uid,
    executorUid: resolved.executorUid,
    title: titleOf(request, frozen.agent_name ?? "Run"),
    isTitleGiven: Boolean(request.title?.trim()),
    prompt,
    mode: modeOf(request),
    interactive: request.interactive,
    source: parent && request.source === "API" ? "ORCHESTRATION" : request.source,
    executionLocation: request.local ? "LOCAL" : "REMOTE",
    conversationUid,
    agentConfig: resolved.agentConfig,
    frozen: parent?.isCostLimited ? { ...frozen, cost_limited_above: true as const } : frozen,
    metadata,
    ...omitUndefined({
      parentRunUid: parent?.uid,
      retryOfRunUid: request.retryOfRunUid,
      submittedPrompt: request.prompt === undefined ? undefined : prompt,
      origin: request.origin,
      agentUid: frozen.agent_uid,
      agentName: frozen.agent_name,
      factoryUid: frozen.factory_uid,
      definitionVersion: frozen.definition_version,
      environmentUid: frozen.environment_uid,
      agentSkill: resolved.skill,
      causeKey: causeKey === undefined ? undefined : storable(causeKey),
      schedule: request.schedule,
      triggerUrl: request.triggerUrl,
      message: prompt === "" && files.length === 0 ? undefined : { uid: newUid(), text: prompt, attachments: files },
    }),
  };
}
