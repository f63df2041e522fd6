import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { instant, route, timestamp, uuid, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import { RunMetadata, RunState } from "./run-schemas.ts";
import { ownerOf } from "./run-owner.ts";
import { runParams } from "./runs.ts";

const WORDS_MAX = 1_000;
const OUTPUT_MAX = 65_536;
const EVENTS_MAX = 100;

const NewLocalRun = z
  .object({
    client_id: uuid().meta({ description: "Identifies the client in its reports. Chosen by the client." }),
    command: z
      .array(z.string().max(100_000))
      .min(1)
      .max(WORDS_MAX)
      .meta({ description: "For display. The platform does not execute it." }),
    title: z.string().max(500).optional(),
    prompt: z.string().optional().meta({ description: "The prompt. Absent: the command." }),
    team: z.boolean().optional(),
    parent_run_id: z.string().min(1).optional(),
    metadata: RunMetadata.optional(),
  })
  .meta({ id: "NewLocalRun" });

const numbered = { seq: z.int().min(1).meta({ description: "1, 2, 3 … per run." }), at: instant().optional() };
const LocalRunEvent = z
  .discriminatedUnion("kind", [
    z.object({
      kind: z.literal("output"),
      ...numbered,
      stream: z.enum(["stdout", "stderr"]),
      text: z.string().max(OUTPUT_MAX),
    }),
    z.object({ kind: z.literal("followup_received"), ...numbered, followup_id: uuid() }),
    z.object({
      kind: z.literal("ended"),
      ...numbered,
      exit_code: z.int().min(0).max(255).optional(),
      signal: z.string().max(20).optional(),
      interrupted: z
        .boolean()
        .optional()
        .meta({ description: "true: the user interrupted the command. The run becomes CANCELLED." }),
      output: z
        .string()
        .max(2 * OUTPUT_MAX)
        .optional()
        .meta({ description: "Beginning and end of the command's output." }),
      truncated: z.boolean().optional(),
    }),
  ])
  .meta({ id: "LocalRunEvent" });

const LocalRunReport = z
  .object({ client_id: uuid(), events: z.array(LocalRunEvent).max(EVENTS_MAX).optional() })
  .meta({ id: "LocalRunReport" });

const LocalRunResponse = z
  .object({
    lease: z.enum(["held", "stopping", "over"]).meta({
      description:
        "`stopping`: the run has ended before its command. `over`: this client no longer owns the lease. In both cases, stop the command.",
    }),
    lease_expires_at: timestamp().optional(),
    acked_seq: z.int().meta({ description: "Sequence number of the last stored event. Continue with the next." }),
    followups: z
      .array(z.object({ followup_id: z.string(), message: z.string() }))
      .meta({ description: "Follow-ups whose receipt has not been reported, oldest first." }),
    state: RunState,
  })
  .meta({ id: "LocalRunResponse" });

/**
 * Returns the routes of local runs, which a client such as `millwright run local` executes itself. The platform cancels
 * them only as descendants of a cancelled run.
 */
export function localRunRoutes({ localRuns }: Pick<Upstreams, "localRuns">): Route[] {
  return [
    route({
      method: "POST",
      path: "/agent/runs/local",
      summary: "Register a local run",
      extension: true,
      description:
        "Registers a run that the client executes itself. The run is INPROGRESS immediately, with `execution_location` LOCAL, and cannot be interrupted; it is cancelled only as a descendant of a cancelled run. Report at least every `report_every_ms`: without a report for more than four times as long, the run becomes ERROR.",
      verbs: ["run.create"],
      idempotent: true,
      storesResponse: true,
      teamHeader: true,
      errors: [403, 404, 409],
      body: NewLocalRun,
      response: z.object({ run_id: z.string(), state: RunState, report_every_ms: z.int() }),
      handler: async (input) => {
        const {
          client_id: clientUid,
          command,
          title,
          prompt = command.join(" "),
          team,
          metadata = {},
          ...named
        } = input.body;
        const run = create(orchestrator.RunRequestSchema, {
          ...ownerOf(team, input.caller),
          ...{ prompt, metadata, config: {}, source: "LOCAL" },
          ...omitUndefined({
            title: title ?? command.join(" ").slice(0, 200),
            parentRunUid: named.parent_run_id ?? input.caller.run?.runUid,
            idempotencyKey: input.request.idempotency?.key,
          }),
        });
        const response = await localRuns.createLocalRun({ run, clientUid, command }, onBehalf(input));
        return {
          run_id: response.run!.uid,
          state: response.run!.state as z.input<typeof RunState>,
          report_every_ms: response.reportEveryMs,
        };
      },
    }),
    route({
      method: "POST",
      path: "/agent/runs/{runId}/report",
      summary: "Report the progress of a local run",
      extension: true,
      description:
        "Renews the lease, appends events (duplicates are ignored), and returns follow-ups for the command. `ended` ends the run: SUCCEEDED with exit code 0, CANCELLED if interrupted, otherwise FAILED.",
      verbs: ["run.manage"],
      errors: [403],
      bodyBytesMax: 8 * 1024 * 1024,
      params: runParams,
      body: LocalRunReport,
      response: LocalRunResponse,
      handler: async (input) => {
        const { client_id: clientUid, events = [] } = input.body;
        const response = await localRuns.reportLocalRun(
          { runUid: input.params.runId, clientUid, events: events.map(eventMessage) },
          onBehalf(input),
        );
        return {
          lease: response.lease as "held",
          acked_seq: Number(response.ackedSeq),
          followups: response.followups.map(({ uid, text }) => ({ followup_id: uid, message: text })),
          state: response.run!.state as z.input<typeof RunState>,
          ...omitUndefined({ lease_expires_at: response.expiresAt && isoTime(response.expiresAt) }),
        };
      },
    }),
  ];
}

const eventMessage = (reported: z.output<typeof LocalRunEvent>): orchestrator.LocalEvent =>
  create(orchestrator.LocalEventSchema, {
    seq: BigInt(reported.seq),
    at: reported.at && timestampFromDate(reported.at),
    event: eventOf(reported),
  });

function eventOf(reported: z.output<typeof LocalRunEvent>): { case: "output" | "followupUid" | "end"; value: any } {
  switch (reported.kind) {
    case "output":
      return {
        case: "output",
        value: create(orchestrator.LocalOutputSchema, { stream: reported.stream, text: reported.text }),
      };
    case "followup_received":
      return { case: "followupUid", value: reported.followup_id };
    case "ended": {
      const { exit_code: exitCode, signal = "", interrupted = false, output = "", truncated = false } = reported;
      return {
        case: "end",
        value: create(orchestrator.LocalEndSchema, {
          signal,
          interrupted,
          output,
          truncated,
          ...omitUndefined({ exitCode }),
        }),
      };
    }
    default:
      return reported satisfies never;
  }
}
