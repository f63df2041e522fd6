import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { worker } from "@millwright/contracts";
import type { Timings } from "../../runs/domain/timings.ts";
import {
  WORKER_VERSION_MIN,
  type DispatchStatus,
  type LeaseRef,
  type Offer,
  type WorkerRegistration,
  type WorkerSession,
} from "../../runs/domain/worker-session.ts";
import type { Accepted } from "../usecases/accept-offers.ts";
import type { AppendResult, EventBatch } from "../../runs/usecases/append-events.ts";
import type { Completion, CompletionResult } from "../../runs/usecases/complete-executions.ts";
import type { Dispatch } from "../usecases/dispatch-offers.ts";
import type { DispatchFailure } from "../usecases/fail-dispatch.ts";
import type { Heartbeat, LeaseStatus } from "../usecases/heartbeat.ts";
import type { HistoryPage, HistoryRequest } from "../usecases/read-history.ts";
import type { LinkedDirective } from "../../runs/domain/directive.ts";
import { storable } from "../../runs/domain/text.ts";
import type { ReturnedLease } from "../usecases/return-leases.ts";
import type { TextPiece } from "../../runs/usecases/publish-text-delta.ts";
import type { DirectiveUpdate } from "../usecases/watch-directives.ts";
import {
  assignmentMessage,
  completion,
  directiveMessage,
  dispatchMessage,
  eventBatch,
  historyEvent,
  leaseMessage,
  leaseRef,
  registration,
} from "./worker-messages.ts";

/** The use cases of WorkerService, bound to their stores. */
export type WorkerUseCases = {
  register(key: string, worker: WorkerRegistration): Promise<string>;
  /** Errors: session_invalid. */
  authenticate(token: string): Promise<WorkerSession>;
  lease(session: WorkerSession, freeSlots: number, waitMs: number, signal: AbortSignal): Promise<readonly Offer[]>;
  accept(session: WorkerSession, offers: readonly LeaseRef[]): Promise<Accepted>;
  dispatch(
    session: WorkerSession,
    offers: readonly LeaseRef[],
  ): Promise<{ readonly dispatches: readonly Dispatch[]; readonly lost: readonly LeaseRef[] }>;
  failDispatch(session: WorkerSession, failure: DispatchFailure): Promise<{ readonly isTaken: boolean }>;
  decline(session: WorkerSession, offers: readonly LeaseRef[]): Promise<void>;
  returnLeases(session: WorkerSession, leases: readonly ReturnedLease[]): Promise<readonly LeaseRef[]>;
  heartbeat(
    session: WorkerSession,
    report: Heartbeat,
  ): Promise<{
    leases: readonly LeaseStatus[];
    watched: readonly DispatchStatus[];
    directives: readonly LinkedDirective[];
  }>;
  append(session: WorkerSession, batches: readonly EventBatch[]): Promise<readonly AppendResult[]>;
  complete(session: WorkerSession, completions: readonly Completion[]): Promise<readonly CompletionResult[]>;
  publishTextDelta(session: WorkerSession, piece: TextPiece): Promise<void>;
  readHistory(session: WorkerSession, request: HistoryRequest): Promise<HistoryPage>;
  watch(session: WorkerSession, signal: AbortSignal): AsyncIterable<DirectiveUpdate>;
};

type ArtifactMethods = Pick<
  ServiceImpl<typeof worker.WorkerService>,
  "openPullRequest" | "reportUsage" | "createArtifact" | "commitArtifact" | "putSnapshot" | "putTranscript"
>;

export type WorkerRoutesDeps = {
  readonly worker: WorkerUseCases;
  readonly artifactMethods: ArtifactMethods;
  readonly timings: Timings;
  readonly publicUrl: string;
  /** The platform's token limit of a run. 0 means no limit. */
  readonly runTokenLimit: number;
};

const FAILURE_CHARS_MAX = 2_000;

/**
 * Registers WorkerService. Register authenticates with a worker key; every other method authenticates with the session
 * token that Register returns.
 */
export function workerRoutes(
  router: ConnectRouter,
  { worker: useCases, artifactMethods, timings, publicUrl, runTokenLimit }: WorkerRoutesDeps,
): void {
  const sessionOf = (context: HandlerContext) => useCases.authenticate(bearerOf(context));
  router.service(worker.WorkerService, {
    ...artifactMethods,
    async register(request, context) {
      const sessionToken = await useCases.register(bearerOf(context), registration(request));
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
      for await (const { directives, workAvailable } of useCases.watch(await sessionOf(context), context.signal)) {
        yield { directives: directives.map(directiveMessage), workAvailable };
      }
    },
    async lease({ freeSlots, waitMs }, context) {
      const offers = await useCases.lease(await sessionOf(context), freeSlots, Math.max(0, waitMs), context.signal);
      return {
        offers: offers.map((offer) => ({ ...leaseMessage(offer), offerExpiresAt: timestampFromDate(offer.expiresAt) })),
      };
    },
    async accept({ leases }, context) {
      const { assignments, lost } = await useCases.accept(await sessionOf(context), leases.map(leaseRef));
      return {
        assignments: assignments.map((assignment) => assignmentMessage(assignment, timings, runTokenLimit)),
        lost: lost.map(leaseMessage),
      };
    },
    async dispatch({ leases }, context) {
      const { dispatches, lost } = await useCases.dispatch(await sessionOf(context), leases.map(leaseRef));
      return { executions: dispatches.map(dispatchMessage), lost: lost.map(leaseMessage) };
    },
    async failDispatch(request, context) {
      const { reason, message, taken } = request;
      const { isTaken } = await useCases.failDispatch(await sessionOf(context), {
        ...leaseRef(request),
        reason: storable(reason),
        message: storable(message).slice(0, FAILURE_CHARS_MAX),
        isTaken: taken,
      });
      return { taken: isTaken };
    },
    async decline({ leases }, context) {
      await useCases.decline(await sessionOf(context), leases.map(leaseRef));
      return {};
    },
    async returnLeases({ leases }, context) {
      const returned = await useCases.returnLeases(await sessionOf(context), leases.map(returnedLease));
      return { returned: returned.map(leaseMessage) };
    },
    async heartbeat(request, context) {
      const { leases, watched, directives } = await useCases.heartbeat(await sessionOf(context), {
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
      const results = await useCases.append(await sessionOf(context), batches.map(eventBatch));
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
      await useCases.publishTextDelta(await sessionOf(context), {
        ...leaseRef(request),
        stepId: storable(stepId),
        offset,
        text: storable(text),
      });
      return {};
    },
    async readHistory(request, context) {
      const { wholeConversation, pageToken } = request;
      const page = await useCases.readHistory(await sessionOf(context), {
        ...leaseRef(request),
        afterSeq: Number(request.afterSeq),
        wholeConversation,
        pageToken,
      });
      return { ...page, events: page.events.map(historyEvent) };
    },
    async complete({ completions }, context) {
      const results = await useCases.complete(await sessionOf(context), completions.map(completion));
      return {
        results: results.map((result) => ({
          ...result,
          ...leaseMessage(result),
          ackedClientSeq: BigInt(result.ackedClientSeq),
        })),
      };
    },
  });
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
  ...(status.expiresAt ? { expiresAt: timestampFromDate(status.expiresAt) } : {}),
});

/** Returns the bearer token of the request, or "" if there is none. */
export const bearerOf = (context: Pick<HandlerContext, "requestHeader">): string =>
  /^Bearer (.+)$/.exec(context.requestHeader.get("authorization") ?? "")?.[1] ?? "";
