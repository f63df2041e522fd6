import type { ConnectRouter } from "@connectrpc/connect";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { orchestrator } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { callerOf, optionalTimestamp } from "@millwright/rpc";
import type { LocalEvent } from "../../runs/domain/local-run.ts";
import type { Timings } from "../../runs/domain/timings.ts";
import { newRun, runMessages } from "../../runs/rpc/run-routes.ts";
import { createRuns, type CreateRunsDeps } from "../../runs/usecases/create-runs.ts";
import type { DescribeRunsDeps } from "../../runs/usecases/describe-runs.ts";
import { reportLocalRun, type ReportLocalRunDeps } from "../usecases/report-local-run.ts";

export type LocalRunRoutesDeps = CreateRunsDeps &
  ReportLocalRunDeps &
  DescribeRunsDeps & { readonly timings: Pick<Timings, "heartbeatMs"> };

const COMMAND_WORDS_MAX = 1_000;
const EVENTS_MAX = 100;

/** Registers LocalRunService: runs that are executed by their clients. */
export function localRunRoutes(router: ConnectRouter, deps: LocalRunRoutesDeps): void {
  router.service(orchestrator.LocalRunService, {
    async createLocalRun({ run: request, clientUid, command }, context) {
      if (!request) throw invalidArgument("run_required", "The request must contain a run.");
      if (command.length === 0 || command.length > COMMAND_WORDS_MAX)
        throw invalidArgument(
          "command_required",
          `command must have 1 to ${COMMAND_WORDS_MAX} words (got ${command.length}).`,
        );
      const local = { clientUid: uidOf(clientUid), command };
      const [created] = await createRuns(deps, callerOf(context), [{ ...newRun(request), local }]);
      return { run: (await runMessages(deps, [created!.run]))[0]!, reportEveryMs: deps.timings.heartbeatMs };
    },
    async reportLocalRun({ runUid, clientUid, events }, context) {
      if (events.length > EVENTS_MAX)
        throw invalidArgument(
          "events_count",
          `A report must have at most ${EVENTS_MAX} events (got ${events.length}).`,
        );
      const { lease, expiresAt, ackedSeq, followups, run } = await reportLocalRun(deps, callerOf(context), {
        runUid,
        clientUid: uidOf(clientUid),
        events: events.map(localEvent),
      });
      return {
        lease,
        ackedSeq: BigInt(ackedSeq),
        followups: [...followups],
        run: (await runMessages(deps, [run]))[0]!,
        expiresAt: optionalTimestamp(expiresAt),
      };
    },
  });
}

function uidOf(given: string): string {
  if (!isUuid(given)) throw invalidArgument("client_invalid", `client_uid must be a UUID (got "${given}").`);
  return given.toLowerCase();
}

/** Converts one reported event. Errors: event_invalid (invalid_argument). */
function localEvent({ seq, at, event }: orchestrator.LocalEvent): LocalEvent {
  const base = { seq: Number(seq), at: at ? timestampDate(at) : new Date() };
  switch (event.case) {
    case "output":
      return {
        ...base,
        kind: "output",
        stream: event.value.stream === "stderr" ? "stderr" : "stdout",
        text: event.value.text,
      };
    case "followupUid":
      return { ...base, kind: "followup", followupUid: uidOf(event.value) };
    case "end": {
      const { exitCode, signal, interrupted, output, truncated } = event.value;
      return {
        ...base,
        kind: "end",
        end: {
          exitCode,
          signal,
          isInterrupted: interrupted,
          output,
          isTruncated: truncated,
        },
      };
    }
    default:
      throw invalidArgument("event_invalid", "An event of a local run must be an output, a follow-up or its end.");
  }
}
