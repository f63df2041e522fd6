import { timestampDate, timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { DomainError, notFound } from "@millwright/errors";
import { clampPageSize } from "@millwright/paging";
import { callerOf } from "@millwright/rpc";
import { publicStep } from "../../conversations/domain/conversation-view.ts";
import type { RunListRequest } from "../domain/run-list.ts";
import type { Run } from "../domain/run.ts";
import {
  describeConversation,
  type DescribeConversationDeps,
} from "../../conversations/usecases/describe-conversation.ts";
import {
  describeConversations,
  type DescribeConversationsDeps,
} from "../../conversations/usecases/describe-conversations.ts";
import { describeRuns, type DescribeRunsDeps } from "../usecases/describe-runs.ts";
import {
  findConversationsByUrl,
  findRunByReference,
  type FindConversationsByUrlDeps,
  type FindRunByReferenceDeps,
} from "../usecases/find-run-by-reference.ts";
import { getBlockSnapshotUrl, type GetBlockSnapshotUrlDeps } from "../../conversations/usecases/block-snapshots.ts";
import { listHandoffFiles, type ListHandoffFilesDeps } from "../../conversations/usecases/list-handoff-files.ts";
import { getConversation, type GetConversationDeps } from "../../conversations/usecases/get-conversation.ts";
import { getHarnessUsage, type GetHarnessUsageDeps } from "../usecases/get-harness-usage.ts";
import { getTimeline } from "../../conversations/usecases/get-timeline.ts";
import { listFollowups, type ListFollowupsDeps } from "../../conversations/usecases/list-followups.ts";
import { listVisibleRuns, type ListRunsDeps } from "../usecases/list-runs.ts";
import { listTeamEvents, watchTeamEvents, type TeamEventsDeps } from "../usecases/team-events.ts";
import { getTranscriptUrl, type GetTranscriptUrlDeps } from "../../conversations/usecases/transcripts.ts";
import { watchRun, type WatchRunDeps } from "../usecases/watch-run.ts";
import {
  artifactMessage,
  followupMessage,
  harnessUsageMessage,
  runEventMessage,
  runMessage,
  standingMessage,
  teamEventMessage,
  timelineMessage,
} from "./run-messages.ts";

export type RunViewDeps = DescribeRunsDeps &
  ListRunsDeps &
  GetConversationDeps &
  DescribeConversationDeps &
  DescribeConversationsDeps &
  ListFollowupsDeps &
  FindRunByReferenceDeps &
  FindConversationsByUrlDeps &
  GetTranscriptUrlDeps &
  GetBlockSnapshotUrlDeps &
  ListHandoffFilesDeps &
  GetHarnessUsageDeps &
  TeamEventsDeps &
  WatchRunDeps & { readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run> };

/** The methods of RunService that read runs. */
export type RunViewMethods = Pick<
  ServiceImpl<typeof orchestrator.RunService>,
  | "listRuns"
  | "getTimeline"
  | "getConversation"
  | "listRunEvents"
  | "watchRunEvents"
  | "listTeamEvents"
  | "watchTeamEvents"
  | "getTranscriptUrl"
  | "getHarnessUsage"
  | "getBlockSnapshotUrl"
  | "listHandoffFiles"
  | "describeConversation"
  | "describeConversations"
  | "listFollowups"
  | "findRunByReference"
  | "findConversationsByUrl"
>;

const EVENT_PAGE = { default: 100, max: 500 };

/** Returns the methods of RunService that read runs. run-routes.ts has the methods that change them. */
export const runViewMethods = (deps: RunViewDeps): RunViewMethods => ({
  async listRuns(request, context) {
    const page = await listVisibleRuns(
      deps,
      callerOf(context),
      listRequest(request),
      request.pageSize,
      request.pageToken,
    );
    return { runs: (await describeRuns(deps, page.runs)).map(runMessage), nextPageToken: page.nextPageToken };
  },
  async getTimeline({ runUid }, context) {
    return {
      events: (await getTimeline(deps, callerOf(context), runUid)).map((entry) => timelineMessage(runUid, entry)),
    };
  },
  async getConversation({ runUid, conversationUid }, context) {
    const { conversationUid: uid, steps } = await getConversation(
      deps,
      callerOf(context),
      runUid ? { runUid } : { conversationUid },
    );
    return { conversationUid: uid, steps: steps.map((step) => publicStep(step)) };
  },
  async listRunEvents({ runUid, afterSeq, pageSize }, context) {
    const run = await deps.getVisibleRun(callerOf(context), runUid);
    const limit = clampPageSize(pageSize, EVENT_PAGE);
    const events = await deps.listRunEvents(run.uid, Math.max(Number(afterSeq), 0), limit + 1);
    return { events: events.slice(0, limit).map(runEventMessage), hasMore: events.length > limit };
  },
  async *watchRunEvents({ runUid, afterSeq }, context) {
    for await (const { events, texts } of watchRun(
      deps,
      callerOf(context),
      runUid,
      Math.max(Number(afterSeq), 0),
      context.signal,
    )) {
      yield {
        events: events.map(runEventMessage),
        texts: texts.map(({ executionId, attempt, stepId, offset, text }) => ({
          executionId: BigInt(executionId),
          attempt,
          stepId,
          offset,
          text,
        })),
      };
    }
    // A client takes the end of the stream for the end of the run, so a stop of this server must be an error.
    if (context.signal.aborted)
      throw new DomainError({
        kind: "unavailable",
        reason: "stream_ended",
        message: "The stream ended early. Resume after the last received event.",
      });
  },
  async listTeamEvents({ teamUid, runUids, afterSequence, pageSize }, context) {
    const limit = clampPageSize(pageSize, EVENT_PAGE);
    const events = await listTeamEvents(
      deps,
      callerOf(context),
      { runUids, ...given({ teamUid }) },
      Math.max(Number(afterSequence), 0),
      limit + 1,
    );
    return { events: events.slice(0, limit).map(teamEventMessage), hasMore: events.length > limit };
  },
  async *watchTeamEvents({ teamUid, runUids, afterSequence }, context) {
    const from = afterSequence === undefined ? undefined : Math.max(Number(afterSequence), 0);
    for await (const { events, after } of watchTeamEvents(
      deps,
      callerOf(context),
      { runUids, ...given({ teamUid }) },
      from,
      context.signal,
    )) {
      yield { events: events.map(teamEventMessage), afterSequence: BigInt(after) };
    }
  },
  async getTranscriptUrl({ runUid, conversationUid }, context) {
    return { url: await getTranscriptUrl(deps, callerOf(context), runUid ? { runUid } : { conversationUid }) };
  },
  async getHarnessUsage({ runUid }, context) {
    const { usage, ...of } = await getHarnessUsage(deps, callerOf(context), runUid);
    return { ...of, ...(usage ? { usage: harnessUsageMessage(usage) } : {}) };
  },
  async getBlockSnapshotUrl({ conversationUid }, context) {
    const { url, expiresAt } = await getBlockSnapshotUrl(deps, callerOf(context), conversationUid);
    return { url, expiresAt: timestampFromDate(expiresAt) };
  },
  async listHandoffFiles({ runUid }, context) {
    return { files: await listHandoffFiles(deps, callerOf(context), runUid) };
  },
  async describeConversation({ conversationUid, runUid, teamUid }, context) {
    const target = { ...(runUid ? { runUid } : { conversationUid }), teamUid: teamUid || undefined };
    const found = await describeConversation(deps, callerOf(context), target);
    const [newest, first] = (await describeRuns(deps, [found.newestRun, found.firstRun])).map(runMessage);
    return {
      conversationUid: found.conversationUid,
      newestRun: newest!,
      firstRun: first!,
      outputs: found.outputs.map(artifactMessage),
    };
  },
  async findRunByReference({ url }, context) {
    return { runUid: await findRunByReference(deps, callerOf(context), url) };
  },
  async findConversationsByUrl({ teamUid, url }, context) {
    if (callerOf(context).principal.type !== "service") throw notFound("conversation");
    return { conversationUids: [...(await findConversationsByUrl(deps, teamUid, url))] };
  },
  async listFollowups(request, context) {
    const { followups, nextPageToken } = await listFollowups(deps, callerOf(context), request);
    return { followups: followups.map(followupMessage), nextPageToken };
  },
  async describeConversations({ conversationUids, withOutputs, teamUid }, context) {
    const standings = await describeConversations(deps, callerOf(context), {
      conversationUids,
      withOutputs,
      teamUid: teamUid || undefined,
    });
    return { conversations: standings.map(standingMessage) };
  },
});

function listRequest(request: orchestrator.ListRunsRequest): RunListRequest {
  const { teamUid, states, factoryUids, sources, search, ancestorRunUid, sortBy, sortOrder } = request;
  const {
    name,
    modelId,
    creatorUid,
    environmentUid,
    skillSpec,
    scheduleUid,
    artifactType,
    executorUid,
    taskStatuses,
    executionLocation,
    metadata,
  } = request;
  const { factoryOnly, automationUid } = request;
  return {
    ...{
      states,
      factoryUids,
      sources,
      search,
      taskStatuses,
      executionLocation,
      metadata,
      automationUid,
      sortBy,
      sortOrder,
    },
    ...(factoryOnly ? { factoryOnly } : {}),
    ...given({
      teamUid,
      ancestorRunUid,
      name,
      modelId,
      creatorUid,
      environmentUid,
      skillSpec,
      scheduleUid,
      artifactType,
      executorUid,
    }),
    ...bound("createdAfter", request.createdAfter),
    ...bound("createdBefore", request.createdBefore),
    ...bound("updatedAfter", request.updatedAfter),
  };
}

/** Returns the texts without the empty ones. */
const given = <T extends Readonly<Record<string, string>>>(texts: T): Partial<T> =>
  Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== "")) as Partial<T>;

const bound = <K extends string>(name: K, time: Timestamp | undefined): { [P in K]?: Date } =>
  time ? ({ [name]: timestampDate(time) } as { [P in K]: Date }) : {};
