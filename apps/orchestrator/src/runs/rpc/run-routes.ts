import type { ServiceImpl } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { invalidArgument, notFound } from "@millwright/errors";
import { allowServices, callerOf } from "@millwright/rpc";
import type { NewRun } from "../domain/new-run.ts";
import type { Run } from "../domain/run.ts";
import type { closeFactory } from "../store/closed-factory-store.ts";
import type { countLiveRuns, findTitles } from "../store/run-store.ts";
import { cancelRun, type CancelRunDeps } from "../usecases/cancel-run.ts";
import { createRuns, type Created } from "../usecases/create-runs.ts";
import { describeRuns, type DescribeRunsDeps } from "../usecases/describe-runs.ts";
import { interruptRun, type InterruptRunDeps } from "../usecases/interrupt-run.ts";
import { retryRun, type RetryRunDeps } from "../usecases/retry-run.ts";
import { knownAgentOf } from "./known-agent.ts";
import { runMessage } from "./run-messages.ts";
import type { Bound } from "../../storage/store/bind-store.ts";

export type RunRoutesDeps = RetryRunDeps &
  CancelRunDeps &
  InterruptRunDeps &
  DescribeRunsDeps & {
    readonly countLiveRuns: Bound<typeof countLiveRuns>;
    readonly closeFactory: Bound<typeof closeFactory>;
    readonly findTitles: Bound<typeof findTitles>;
  };

type Methods = Pick<
  ServiceImpl<typeof orchestrator.RunService>,
  | "createRuns"
  | "retryRun"
  | "getRun"
  | "cancelRun"
  | "interruptRun"
  | "countLiveRuns"
  | "closeFactory"
  | "getRunTitles"
>;

/**
 * The services that may call each method of RunService in their own name. The methods that are not listed are called on
 * behalf of a user or a run.
 */
export const runAllowList = allowServices(orchestrator.RunService, {
  createRuns: ["factories", "scheduler", "scoring"],
  getRun: ["factories", "gateway", "scoring"],
  cancelRun: ["factories", "scheduler", "scoring"],
  countLiveRuns: ["factories", "gateway"],
  closeFactory: ["factories"],
  getRunTitles: ["factories"],
  listRuns: ["scheduler"],
});

const RUNS_MAX = 500;
const TITLES_MAX = 500;

/** Returns the methods of RunService that change runs. run-view-routes.ts has the methods that read runs. */
export const runMethods = (deps: RunRoutesDeps): Methods => ({
  async createRuns({ runs: requests, knownAgent }, context) {
    if (requests.length === 0 || requests.length > RUNS_MAX)
      throw invalidArgument("runs_count", `A request must create 1 to ${RUNS_MAX} runs (got ${requests.length}).`);
    const created = await createRuns(deps, callerOf(context), requests.map(newRun), knownAgentOf(knownAgent));
    return { runs: await createdMessages(deps, created) };
  },
  async retryRun({ runUid, idempotencyKey, causeKey }, context) {
    const created = await retryRun(deps, callerOf(context), {
      runUid,
      idempotencyKey: idempotencyKey || undefined,
      causeKey: causeKey || undefined,
    });
    return { run: (await createdMessages(deps, [created]))[0]! };
  },
  async getRun({ runUid }, context) {
    return { run: await singleRunMessage(deps, await deps.getVisibleRun(callerOf(context), runUid)) };
  },
  async cancelRun({ runUid, tree, cause, idempotencyKey }, context) {
    return {
      run: await singleRunMessage(
        deps,
        await cancelRun(deps, callerOf(context), {
          runUid,
          tree,
          cause: cause || undefined,
          idempotencyKey: idempotencyKey || undefined,
        }),
      ),
    };
  },
  async interruptRun({ runUid, conversationUid }, context) {
    return { runUid: await interruptRun(deps, callerOf(context), runUid ? { runUid } : { conversationUid }) };
  },
  async countLiveRuns({ factoryUid }) {
    return { live: await deps.countLiveRuns(factoryUid) };
  },
  async closeFactory({ factoryUid, withLiveRuns }) {
    return { live: await deps.closeFactory(factoryUid, withLiveRuns) };
  },
  async getRunTitles({ runUids }, context) {
    if (runUids.length > TITLES_MAX)
      throw invalidArgument("runs_count", `run_uids must have at most ${TITLES_MAX} entries (got ${runUids.length}).`);
    if (callerOf(context).principal.type !== "service") throw notFound("run");
    return { titles: await deps.findTitles(runUids) };
  },
});

async function createdMessages(deps: DescribeRunsDeps, created: readonly Created[]) {
  const messages = await runMessages(
    deps,
    created.map(({ run }) => run),
  );
  return created.map(({ created: isNew, atCapacity }, n) => ({ run: messages[n]!, created: isNew, atCapacity }));
}

/** Returns the public records of runs, including their artifacts and usage. */
export const runMessages = async (deps: DescribeRunsDeps, runs: readonly Run[]): Promise<orchestrator.Run[]> =>
  (await describeRuns(deps, runs)).map(runMessage);

const singleRunMessage = async (deps: DescribeRunsDeps, run: Run): Promise<orchestrator.Run> =>
  (await runMessages(deps, [run]))[0]!;

/** Converts a request. Errors: owner_invalid (invalid_argument). */
export function newRun(request: orchestrator.RunRequest): NewRun {
  const { ownerType, ownerUid, mode, source, config } = request;
  if ((ownerType !== "team" && ownerType !== "user") || ownerUid === "")
    throw invalidArgument("owner_invalid", "The owner of a run must be a team or a user.");
  return {
    config: config ?? {},
    mode,
    owner: { type: ownerType, uid: ownerUid },
    interactive: request.interactive,
    metadata: request.metadata,
    source: source || "API",
    attachments: request.attachments.map(({ fileName, mimeType, data }) => ({ fileName, mimeType, data })),
    prompt: request.prompt,
    title: request.title || undefined,
    skill: request.skill || undefined,
    creatorUid: request.creatorUid || undefined,
    agentUid: request.agentUid || undefined,
    agentName: request.agentName || undefined,
    factoryUid: request.factoryUid || undefined,
    conversationUid: request.conversationUid || undefined,
    parentRunUid: request.parentRunUid || undefined,
    causeKey: request.causeKey || undefined,
    origin: request.origin || undefined,
    idempotencyKey: request.idempotencyKey || undefined,
    triggerUrl: request.triggerUrl || undefined,
    workspaceOfRunUid: request.workspaceOfRunUid || undefined,
    dispatcherConfig: request.dispatcherConfig,
    judge: request.judge && { scorerUid: request.judge.scorerUid, classifications: [...request.judge.classifications] },
    pinnedRepositories:
      request.pinnedRepositories.length > 0
        ? request.pinnedRepositories.map(({ owner, repo, commit }) => ({ owner, repo, commit }))
        : undefined,
    agentOverrides: Object.keys(request.agentOverrides).length > 0 ? request.agentOverrides : undefined,
    schedule: request.schedule && scheduleOf(request.schedule),
  };
}

/** Converts a schedule to the field names of the public API. */
const scheduleOf = ({
  scheduleId,
  scheduleName,
  cronSchedule,
}: orchestrator.ScheduleRef): NonNullable<NewRun["schedule"]> => ({
  schedule_id: scheduleId,
  schedule_name: scheduleName,
  cron_schedule: cronSchedule,
});
