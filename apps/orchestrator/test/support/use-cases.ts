import type { Caller } from "@millwright/caller";
import type { RunDeps } from "../../src/compose-runs.ts";
import { continueConversation } from "../../src/conversations/usecases/continue-conversation.ts";
import { createFollowup } from "../../src/conversations/usecases/create-followup.ts";
import { prepareAttachments } from "../../src/conversations/usecases/prepare-attachments.ts";
import { acceptOffers } from "../../src/leases/usecases/accept-offers.ts";
import { authenticateSession } from "../../src/leases/usecases/authenticate-session.ts";
import { checkLease } from "../../src/leases/usecases/check-lease.ts";
import { declineOffers } from "../../src/leases/usecases/decline-offers.ts";
import { dispatchOffers } from "../../src/leases/usecases/dispatch-offers.ts";
import { failDispatch } from "../../src/leases/usecases/fail-dispatch.ts";
import { getQueueStatus } from "../../src/leases/usecases/get-queue-status.ts";
import { heartbeat } from "../../src/leases/usecases/heartbeat.ts";
import { openSession } from "../../src/leases/usecases/open-session.ts";
import { readHistory } from "../../src/leases/usecases/read-history.ts";
import { reportLocalRun } from "../../src/leases/usecases/report-local-run.ts";
import { returnLeases } from "../../src/leases/usecases/return-leases.ts";
import { watchDirectives } from "../../src/leases/usecases/watch-directives.ts";
import type { LocalStart } from "../../src/runs/domain/local-run.ts";
import type { NewRun } from "../../src/runs/domain/new-run.ts";
import { appendEvents } from "../../src/runs/usecases/append-events.ts";
import { cancelRun } from "../../src/runs/usecases/cancel-run.ts";
import { cancelRunsOfAgent } from "../../src/runs/usecases/cancel-runs-of-agent.ts";
import { completeExecutions } from "../../src/runs/usecases/complete-executions.ts";
import { createRuns } from "../../src/runs/usecases/create-runs.ts";
import { interruptRun } from "../../src/runs/usecases/interrupt-run.ts";
import { publishTextDelta } from "../../src/runs/usecases/publish-text-delta.ts";
import { retryRun } from "../../src/runs/usecases/retry-run.ts";
import { bindStore } from "../../src/storage/store/bind-store.ts";

/** Returns the use cases of the life cycle of runs with their dependencies, as the routes call them. */
export const useCasesWith = (deps: RunDeps) => ({
  ...bindStore(deps, { cancelRun, cancelRunsOfAgent, checkLease, continueConversation, createFollowup, createRuns }),
  ...bindStore(deps, { getQueueStatus, interruptRun, prepareAttachments, reportLocalRun, retryRun }),
  wakeups: deps.wakeups,
  liveTexts: deps.liveTexts,
  closeFactory: deps.closeFactory,
  getRun: deps.getVisibleRun,
  getRunTitles: deps.findTitles,
  async createLocalRun(caller: Caller, run: NewRun & { readonly local: LocalStart }) {
    const [created] = await createRuns(deps, caller, [run]);
    return { ...created!, reportEveryMs: deps.timings.heartbeatMs };
  },
  worker: {
    ...bindStore(deps, {
      dispatch: dispatchOffers,
      failDispatch,
      heartbeat,
      publishTextDelta,
      readHistory,
      returnLeases,
    }),
    ...bindStore(deps, {
      accept: acceptOffers,
      append: appendEvents,
      complete: completeExecutions,
      decline: declineOffers,
    }),
    ...bindStore(deps, { authenticate: authenticateSession, register: openSession, watch: watchDirectives }),
    lease: (...args: Parameters<typeof deps.leaseWork.lease>) => deps.leaseWork.lease(...args),
  },
});
