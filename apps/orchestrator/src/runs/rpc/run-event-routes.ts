import type { ConnectRouter } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { clampPageSize } from "@millwright/paging";
import { allowServices, callerOf } from "@millwright/rpc";
import type { Run } from "../domain/run.ts";
import { listTeamEvents, watchTeamEvents, type TeamEventsDeps } from "../usecases/team-events.ts";
import { watchRun, type WatchRunDeps } from "../usecases/watch-run.ts";
import { runEventMessage, teamEventMessage } from "./run-messages.ts";

export type RunEventRoutesDeps = TeamEventsDeps &
  WatchRunDeps & { readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run> };

/** The services that may call each method of RunEventService in their own name. */
export const runEventAllowList = allowServices(orchestrator.RunEventService, { listRunEvents: ["gateway"] });

const EVENT_PAGE = { default: 100, max: 500 };

/** Registers RunEventService: the events of one run, and the state changes of teams' runs. */
export function runEventRoutes(router: ConnectRouter, deps: RunEventRoutesDeps): void {
  router.service(orchestrator.RunEventService, {
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
        { runUids, teamUid: teamUid || undefined },
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
        { runUids, teamUid: teamUid || undefined },
        from,
        context.signal,
      )) {
        yield { events: events.map(teamEventMessage), afterSequence: BigInt(after) };
      }
    },
  });
}
