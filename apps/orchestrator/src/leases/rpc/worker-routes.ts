import { optionalTimestamp } from "@millwright/rpc";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { worker } from "@millwright/contracts";
import type { Timings } from "../../runs/domain/timings.ts";
import { WORKER_VERSION_MIN } from "../../runs/domain/worker-session.ts";
import { storable } from "../../runs/domain/text.ts";
import { appendEvents, type AppendEventsDeps } from "../../runs/usecases/append-events.ts";
import { completeExecutions, type CompleteExecutionsDeps } from "../../runs/usecases/complete-executions.ts";
import { publishTextDelta, type PublishTextDeltaDeps } from "../../runs/usecases/publish-text-delta.ts";
import { acceptOffers, type AcceptOffersDeps } from "../usecases/accept-offers.ts";
import { authenticateSession, type AuthenticateSessionDeps } from "../usecases/authenticate-session.ts";
import { declineOffers } from "../usecases/decline-offers.ts";
import { dispatchOffers } from "../usecases/dispatch-offers.ts";
import { failDispatch } from "../usecases/fail-dispatch.ts";
import { heartbeat, type HeartbeatDeps, type LeaseStatus } from "../usecases/heartbeat.ts";
import type { LeaseWork } from "../usecases/lease-work.ts";
import { openSession, type OpenSessionDeps } from "../usecases/open-session.ts";
import { readHistory, type ReadHistoryDeps } from "../usecases/read-history.ts";
import { returnLeases, type ReturnedLease } from "../usecases/return-leases.ts";
import { watchDirectives, type WatchDirectivesDeps } from "../usecases/watch-directives.ts";
import {
  assignmentMessage,
  directiveMessage,
  dispatchMessage,
  historyEvent,
  leaseMessage,
  leaseRef,
} from "./worker-messages.ts";
import { completion, eventBatch, registration } from "./worker-requests.ts";

export type WorkerMethodsDeps = AcceptOffersDeps &
  AppendEventsDeps &
  AuthenticateSessionDeps &
  CompleteExecutionsDeps &
  HeartbeatDeps &
  OpenSessionDeps &
  PublishTextDeltaDeps &
  ReadHistoryDeps &
  WatchDirectivesDeps & {
    readonly leaseWork: Pick<LeaseWork, "lease" | "isWaiting">;
    readonly timings: Timings;
    readonly publicUrl: string;
    /** The platform's token limit of a run. 0 means no limit. */
    readonly runTokenLimit: number;
  };

/** The methods of WorkerService about sessions, leases and events. */
export type WorkerMethods = Omit<
  ServiceImpl<typeof worker.WorkerService>,
  | "openPullRequest"
  | "reserveCost"
  | "reportUsage"
  | "createArtifact"
  | "commitArtifact"
  | "putSnapshot"
  | "putTranscript"
>;

const FAILURE_CHARS_MAX = 2_000;

/**
 * Returns the methods of WorkerService about sessions, leases and events. Register authenticates with a worker key;
 * every other method authenticates with the session token that Register returns.
 */
export function workerMethods(deps: WorkerMethodsDeps): WorkerMethods {
  const { timings, publicUrl, runTokenLimit } = deps;
  const sessionOf = (context: HandlerContext) => authenticateSession(deps, bearerOf(context));
  return {
    async register(request, context) {
      const sessionToken = await openSession(deps, bearerOf(context), registration(request));
      return {
        sessionToken,
        publicUrl,
        heartbeatMs: timings.heartbeatMs,
        leaseTtlMs: timings.leaseTtlMs,
        offerTtlMs: timings.offerTtlMs,
        outboundGateCloseMs: timings.outboundGateCloseMs,
        minVersion: WORKER_VERSION_MIN,
      };
    },
    async *subscribe(_request, context) {
      for await (const { directives, workAvailable } of watchDirectives(
        deps,
        await sessionOf(context),
        context.signal,
      )) {
        yield { directives: directives.map(directiveMessage), workAvailable };
      }
    },
    async lease({ freeSlots, waitMs }, context) {
      const offers = await deps.leaseWork.lease(
        await sessionOf(context),
        freeSlots,
        Math.max(0, waitMs),
        context.signal,
      );
      return {
        offers: offers.map((offer) => ({ ...leaseMessage(offer), offerExpiresAt: timestampFromDate(offer.expiresAt) })),
      };
    },
    async accept({ leases }, context) {
      const { assignments, lost } = await acceptOffers(deps, await sessionOf(context), leases.map(leaseRef));
      return {
        assignments: assignments.map((assignment) => assignmentMessage(assignment, timings, runTokenLimit)),
        lost: lost.map(leaseMessage),
      };
    },
    async dispatch({ leases }, context) {
      const { dispatches, lost } = await dispatchOffers(deps, await sessionOf(context), leases.map(leaseRef));
      return { executions: dispatches.map(dispatchMessage), lost: lost.map(leaseMessage) };
    },
    async failDispatch(request, context) {
      const { reason, message, taken } = request;
      const { isTaken } = await failDispatch(deps, await sessionOf(context), {
        ...leaseRef(request),
        reason: storable(reason),
        message: storable(message).slice(0, FAILURE_CHARS_MAX),
        isTaken: taken,
      });
      return { taken: isTaken };
    },
    async decline({ leases }, context) {
      await declineOffers(deps, await sessionOf(context), leases.map(leaseRef));
      return {};
    },
    async returnLeases({ leases }, context) {
      const returned = await returnLeases(deps, await sessionOf(context), leases.map(returnedLease));
      return { returned: returned.map(leaseMessage) };
    },
    async heartbeat(request, context) {
      const { leases, watched, directives } = await heartbeat(deps, await sessionOf(context), {
        state: request.state === "DRAINING" ? "DRAINING" : "READY",
        freeSlots: Math.max(0, request.freeSlots),
        leases: request.leases.map((lease) => ({
          ...leaseRef(lease),
          phase: lease.phase,
          ackedDirectiveSeq: Number(lease.ackedDirectiveSeq),
        })),
        modelCalls: request.modelCalls.map(({ provider, outcome, count }) => ({ provider, outcome, count })),
        watched: request.watched.map(leaseRef),
      });
      return {
        leases: leases.map(leaseStatus),
        watched: watched.map((dispatch) => ({
          ...leaseMessage(dispatch),
          status: dispatch.status,
          stopping: dispatch.isStopping,
        })),
        directives: directives.map(directiveMessage),
      };
    },
    async appendEvents({ batches }, context) {
      const results = await appendEvents(deps, await sessionOf(context), batches.map(eventBatch));
      return {
        results: results.map((result) => ({
          ...result,
          ...leaseMessage(result),
          ackedClientSeq: BigInt(result.ackedClientSeq),
        })),
      };
    },
    async publishTextDelta(request, context) {
      const { stepId, offset, text } = request;
      await publishTextDelta(deps, await sessionOf(context), {
        ...leaseRef(request),
        stepId: storable(stepId),
        offset,
        text: storable(text),
      });
      return {};
    },
    async readHistory(request, context) {
      const { wholeConversation, pageToken } = request;
      const page = await readHistory(deps, await sessionOf(context), {
        ...leaseRef(request),
        afterSeq: Number(request.afterSeq),
        wholeConversation,
        pageToken,
      });
      return { ...page, events: page.events.map(historyEvent) };
    },
    async complete({ completions }, context) {
      const results = await completeExecutions(deps, await sessionOf(context), completions.map(completion));
      return {
        results: results.map((result) => ({
          ...result,
          ...leaseMessage(result),
          ackedClientSeq: BigInt(result.ackedClientSeq),
        })),
      };
    },
  };
}

const returnedLease = (lease: worker.ReturnedLease): ReturnedLease => ({
  ...leaseRef(lease),
  reason: storable(lease.reason),
  message: storable(lease.message).slice(0, FAILURE_CHARS_MAX),
  isFailure: lease.failure,
});

const leaseStatus = (status: LeaseStatus) => ({
  ...leaseMessage(status),
  status: status.status,
  runToken: status.runToken ?? "",
  expiresAt: optionalTimestamp(status.expiresAt),
});

/** Returns the bearer token of the request, or "" if there is none. */
export const bearerOf = (context: Pick<HandlerContext, "requestHeader">): string =>
  /^Bearer (.+)$/.exec(context.requestHeader.get("authorization") ?? "")?.[1] ?? "";
