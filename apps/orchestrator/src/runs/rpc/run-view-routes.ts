import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { orchestrator } from "@millwright/contracts";
import { callerOf } from "@millwright/rpc";
import type { RunListRequest } from "../domain/run-list.ts";
import { describeRuns, type DescribeRunsDeps } from "../usecases/describe-runs.ts";
import { findRunByReference, type FindRunByReferenceDeps } from "../usecases/find-run-by-reference.ts";
import { getHarnessUsage, type GetHarnessUsageDeps } from "../usecases/get-harness-usage.ts";
import { listVisibleRuns, type ListRunsDeps } from "../usecases/list-runs.ts";
import { harnessUsageMessage, runMessage } from "./run-messages.ts";

export type RunViewDeps = DescribeRunsDeps & ListRunsDeps & FindRunByReferenceDeps & GetHarnessUsageDeps;

/** The methods of RunService that read runs. */
export type RunViewMethods = Pick<
  ServiceImpl<typeof orchestrator.RunService>,
  "listRuns" | "getHarnessUsage" | "findRunByReference"
>;

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
  async getHarnessUsage({ runUid }, context) {
    const { usage, ...of } = await getHarnessUsage(deps, callerOf(context), runUid);
    return { ...of, usage: usage ? harnessUsageMessage(usage) : undefined };
  },
  async findRunByReference({ url }, context) {
    return { runUid: await findRunByReference(deps, callerOf(context), url) };
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
  const { factoryOnly, automationUid, conversationUid } = request;
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
    factoryOnly: factoryOnly || undefined,
    ...nonEmptyTexts({
      teamUid,
      ancestorRunUid,
      conversationUid,
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
const nonEmptyTexts = <T extends Readonly<Record<string, string>>>(texts: T): Partial<T> =>
  Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== "")) as Partial<T>;

const bound = <K extends string>(name: K, time: Timestamp | undefined): { [P in K]?: Date } =>
  time ? ({ [name]: timestampDate(time) } as { [P in K]: Date }) : {};
