import { actorOf, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { newUid, type ConversationUid, type RunUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import type { KnownAgent } from "../../catalog/domain/resolved-agent.ts";
import { borrow, type LeftWorkspace } from "../domain/borrowed-workspace.ts";
import type { Attachment } from "../domain/message.ts";
import { modeOf, type NewRun } from "../domain/new-run.ts";
import type { ResolvedRun, ResolveRunRequest } from "../domain/resolved-run.ts";
import { parentInvalid } from "../domain/run-parent.ts";
import type { Cause } from "../domain/run-record.ts";
import type { Run } from "../domain/run.ts";
import { storableJson } from "../domain/text.ts";
import { TRIAL_SOURCE, type TrialSettings } from "../domain/trial-settings.ts";
import type { OnceRequest } from "../../storage/domain/once-request.ts";
import { firstResultOr, type FirstResultDeps } from "./first-result.ts";
import { sha256, storeFiles, type RunFilesDeps } from "./run-files.ts";

export type PrepareRunsDeps = RunFilesDeps &
  FirstResultDeps & {
    /**
     * Resolves a configuration. Errors: agent_not_found, environment_not_found, model_unknown, config_conflict and others
     * of resolve-run.
     */
    resolveRun(caller: Caller, request: ResolveRunRequest, known?: KnownAgent): Promise<ResolvedRun>;
    findVisibleRun(caller: Caller, uid: string): Promise<Run | undefined>;
    /** Returns the workspace that a run left, regardless of the caller. */
    findLeftWorkspace(runUid: string): Promise<LeftWorkspace | undefined>;
    /** Returns the settings that a run below a benchmark trial inherits from it. */
    findTrialSettings(runUid: string): Promise<TrialSettings | undefined>;
    findNewestOfConversation(caller: Caller, conversationUid: string): Promise<Run | undefined>;
    /** Returns the runs that causes have created already, in the order of the causes. */
    findByCauses(causes: readonly Cause[]): Promise<readonly (RunUid | undefined)[]>;
  };

/** The result of one request; stored as JSON for its idempotency key. */
export type StoredResult = { readonly uid: string; readonly created: boolean; readonly atCapacity: boolean };

/** A request with everything that is determined before its transaction starts. */
export type PreparedRun = {
  readonly request: NewRun;
  readonly causeKey?: string;
  readonly resolved: ResolvedRun;
  readonly conversationUid: ConversationUid;
  readonly files: readonly Attachment[];
};

/** A request that is not executed, because an earlier one has created its run. */
export type EarlierRun = { readonly earlier: StoredResult };

/**
 * Calls upstream services, reads other runs and stores files, before the transaction starts. A repeated request returns
 * the first result even if resources that it names were deleted since.
 */
export async function prepareRuns(
  deps: PrepareRunsDeps,
  caller: Caller,
  requests: readonly NewRun[],
  knownAgent: KnownAgent | undefined,
): Promise<(PreparedRun | EarlierRun)[]> {
  const earlier = await earlierRuns(deps, caller, requests);
  const sharing = { ...deps, resolveRun: resolveOncePerRequest(deps, knownAgent) };
  const resolved = await Promise.all(
    requests.map(async (request, n) =>
      earlier[n]
        ? { earlier: { uid: earlier[n], created: false, atCapacity: false } }
        : resolve(sharing, caller, request).catch(async (error: unknown): Promise<EarlierRun> => {
            const first = (await firstResultOr(deps, onceRequest(caller, request), error)) as StoredResult;
            return { earlier: { ...first, created: false } };
          }),
    ),
  );
  return Promise.all(
    resolved.map(async (run) =>
      "earlier" in run ? run : { ...run, files: await storeFiles(deps, run.request.attachments) },
    ),
  );
}

/** Returns the idempotency key of a request. A cause takes its place, because it has no time limit. */
export const keyOf = (caller: Caller, request: NewRun): string | undefined =>
  causeOf(caller, request) === undefined ? request.idempotencyKey : undefined;

/** Identifies repetitions of a request. The body of a retry is the retried run: what is copied from it may change. */
export function onceRequest(caller: Caller, request: NewRun): OnceRequest {
  const { idempotencyKey: _, causeKey: __, ...content } = request;
  const key = keyOf(caller, request);
  const attachments = key ? content.attachments.map(({ data, ...file }) => ({ ...file, sha256: sha256(data) })) : [];
  const body = request.retryOfRunUid ?? { ...content, mode: modeOf(request), attachments };
  return { principalUid: actorOf(caller).uid, operation: "create_run", key, body };
}

/** Returns the runs that the causes of these requests have created already. */
async function earlierRuns(
  deps: PrepareRunsDeps,
  caller: Caller,
  requests: readonly NewRun[],
): Promise<(RunUid | undefined)[]> {
  const causes = requests.flatMap((request, n) => {
    const causeKey = causeOf(caller, request);
    return causeKey ? [{ n, ownerUid: request.owner.uid, causeKey }] : [];
  });
  const found = await deps.findByCauses(causes);
  const earlier: (RunUid | undefined)[] = requests.map(() => undefined);
  for (const [index, { n }] of causes.entries()) earlier[n] = found[index];
  return earlier;
}

/** Resolves identical requests once. The results contain only text that PostgreSQL can store. */
function resolveOncePerRequest(
  deps: PrepareRunsDeps,
  knownAgent: KnownAgent | undefined,
): PrepareRunsDeps["resolveRun"] {
  const known = new Map<string, Promise<ResolvedRun>>();
  return (caller, request) => {
    const key = JSON.stringify(request);
    const resolving = known.get(key) ?? deps.resolveRun(caller, request, knownAgent).then(storableRun);
    known.set(key, resolving);
    return resolving;
  };
}

const storableRun = (resolved: ResolvedRun): ResolvedRun => ({
  ...resolved,
  agentConfig: storableJson(resolved.agentConfig),
  frozen: storableJson(resolved.frozen),
  skill: resolved.skill ? storableJson(resolved.skill) : undefined,
});

async function resolve(deps: PrepareRunsDeps, caller: Caller, request: NewRun): Promise<Omit<PreparedRun, "files">> {
  const causeKey = causeOf(caller, request);
  const parent = request.parentRunUid ? await deps.findVisibleRun(caller, request.parentRunUid) : undefined;
  if (request.parentRunUid && !parent) throw parentInvalid();
  const conversationUid = await conversationOf(deps, caller, request);
  const { owner, config, dispatcherConfig, skill, agentUid, agentName } = request;
  // A child run names an agent of its parent's factory.
  const factoryUid = request.factoryUid ?? (agentName ? parent?.factoryUid : undefined);
  const borrowed = request.workspaceOfRunUid
    ? borrow(await deps.findLeftWorkspace(request.workspaceOfRunUid), owner)
    : undefined;
  const repositories = borrowed?.repositories ?? request.pinnedRepositories;
  const trial = parent ? await deps.findTrialSettings(parent.uid) : trialSettingsOf(request);
  const resolved = await deps.resolveRun(caller, {
    owner,
    config,
    ...omitUndefined({
      trial,
      judge: request.judge,
      workspace: borrowed?.workspace,
      repositories,
      dispatcherConfig,
      skill,
      agentUid,
      agentName,
      factoryUid,
    }),
  });
  return { request, resolved, conversationUid, ...omitUndefined({ causeKey }) };
}

/**
 * Returns the cause of a request. A run that an execution creates with its run token is created once per tool call,
 * even if the attempt is repeated.
 */
const causeOf = (caller: Caller, { causeKey, idempotencyKey }: NewRun): string | undefined =>
  causeKey ?? (caller.run && idempotencyKey ? `${caller.run.runUid}:${idempotencyKey}` : undefined);

async function conversationOf(
  deps: PrepareRunsDeps,
  caller: Caller,
  { conversationUid }: NewRun,
): Promise<ConversationUid> {
  if (conversationUid === undefined) return newUid<ConversationUid>();
  const newest = await deps.findNewestOfConversation(caller, conversationUid);
  if (!newest) throw notFound("conversation");
  return newest.conversationUid;
}

/** Returns the settings that the runs below a new benchmark trial inherit. */
function trialSettingsOf({ source, pinnedRepositories = [], agentOverrides = {} }: NewRun): TrialSettings | undefined {
  return source === TRIAL_SOURCE
    ? { pinned_repositories: pinnedRepositories, agent_overrides: agentOverrides }
    : undefined;
}
