import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { parseStored } from "@millwright/payload-filter";
import { cursor, PageInfo, pageInfo, pageLimit, pathUid, route, uuid, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  Automation,
  automationRecord,
  AutomationSettings,
  Decision,
  decisionRecord,
  NewAutomation,
  Replay,
  Replayed,
  replayRecord,
} from "./automation-schemas.ts";
import { factoryParams } from "../factories/factories.ts";

/** A prompt has at most 256 KiB; JSON escapes make it longer. */
const BODY_BYTES_MAX = 2 * 1024 * 1024;

const automationParams = z.object({ uid: pathUid("factory"), automationUid: pathUid("automation") });
const deliveryParams = z.object({
  uid: pathUid("factory"),
  webhookUid: pathUid("webhook"),
  deliveryUid: pathUid("delivery"),
});
const Decisions = z.object({ decisions: z.array(Decision), page_info: PageInfo });
const aboutEvents = z.object({
  event_uid: uuid().optional().describe("Uid of an event or delivery: returns only decisions on it, including replays"),
  limit: pageLimit(50),
  cursor: cursor(),
});

/** Returns the routes of automations and their decisions. Millwright extension. */
export function automationRoutes({ automations }: Pick<Upstreams, "automations">): Route[] {
  const automationPath = "/factory/{uid}/automations/{automationUid}";
  const definitionOf = (body: { agent?: string | null | undefined }): JsonObject => {
    const { agent, ...keys } = body;
    return parseStored(JSON.stringify({ ...keys, agent: agent || undefined })) as JsonObject;
  };
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/automations",
      extension: true,
      summary: "List a factory's automations",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ automations: z.array(Automation), page_info: PageInfo }),
      handler: async (input) => {
        const page = await automations.listAutomations(
          { factoryUid: input.params.uid, pageSize: input.query.limit, pageToken: input.query.cursor ?? "" },
          onBehalf(input),
        );
        return { automations: page.automations.map(automationRecord), page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "POST",
      path: "/factory/{uid}/automations",
      extension: true,
      summary: "Create an automation",
      description:
        "The keys are those of `automations/<name>/automation.md` in definition files, with underscores. References to a missing agent, runner, model, environment or secret are rejected, as in files. All problems are reported at once.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      idempotent: true,
      status: 201,
      bodyBytesMax: BODY_BYTES_MAX,
      exactNumbers: true,
      params: factoryParams,
      body: NewAutomation,
      response: Automation,
      handler: async (input) => {
        const { automation } = await automations.createAutomation(
          {
            factoryUid: input.params.uid,
            automation: definitionOf(input.body),
            idempotencyKey: input.request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return automationRecord(automation!);
      },
    }),
    route({
      method: "GET",
      path: automationPath,
      extension: true,
      summary: "Read an automation",
      verbs: ["factory.view"],
      errors: [403],
      params: automationParams,
      response: Automation,
      handler: async (input) =>
        automationRecord((await automations.getAutomation(refOf(input.params), onBehalf(input))).automation!),
    }),
    route({
      method: "PUT",
      path: automationPath,
      extension: true,
      summary: "Replace an automation",
      description:
        "The caller becomes the creator of its future runs. For automations defined by files, only `enabled` can be changed, or nothing if the files are in a repository of the team.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      bodyBytesMax: BODY_BYTES_MAX,
      exactNumbers: true,
      params: automationParams,
      body: AutomationSettings,
      response: Automation,
      handler: async (input) =>
        automationRecord(
          (
            await automations.replaceAutomation(
              { ...refOf(input.params), automation: definitionOf(input.body) },
              onBehalf(input),
            )
          ).automation!,
        ),
    }),
    route({
      method: "DELETE",
      path: automationPath,
      extension: true,
      summary: "Delete an automation",
      description: "The automation no longer fires. Its runs and decisions are retained.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      status: 204,
      params: automationParams,
      handler: async (input) => void (await automations.deleteAutomation(refOf(input.params), onBehalf(input))),
    }),
    route({
      method: "POST",
      path: `${automationPath}/run`,
      extension: true,
      summary: "Run an automation now",
      description: "Ignores its triggers. `run_id` is null while the run is being created.",
      verbs: ["run.create"],
      errors: [403, 409],
      idempotent: true,
      storesResponse: true,
      status: 201,
      params: automationParams,
      response: Decision,
      handler: async (input) =>
        decisionRecord(
          (
            await automations.runAutomation(
              { ...refOf(input.params), idempotencyKey: input.request.idempotency?.key ?? "" },
              onBehalf(input),
            )
          ).decision!,
        ),
    }),
    route({
      method: "GET",
      path: `${automationPath}/decisions`,
      extension: true,
      summary: "List the decisions of an automation, newest first",
      verbs: ["factory.view"],
      errors: [403],
      params: automationParams,
      query: aboutEvents,
      response: Decisions,
      handler: async (input) =>
        decisionsOf(
          await automations.listDecisions({ ...refOf(input.params), ...decisionQuery(input.query) }, onBehalf(input)),
        ),
    }),
    route({
      method: "GET",
      path: "/factory/{uid}/decisions",
      extension: true,
      summary: "List the decisions of a factory's automations, newest first",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      query: aboutEvents,
      response: Decisions,
      handler: async (input) =>
        decisionsOf(
          await automations.listDecisions(
            { factoryUid: input.params.uid, ...decisionQuery(input.query) },
            onBehalf(input),
          ),
        ),
    }),
    route({
      method: "POST",
      path: "/factory/{uid}/webhooks/{webhookUid}/deliveries/{deliveryUid}/replay",
      extension: true,
      summary: "Evaluate an automation for a delivery again",
      description:
        "Uses the current automation and the stored delivery. A match starts another run unless `dry_run` is true. The audit log records both.",
      verbs: ["webhook.manage", "run.create"],
      errors: [403, 409],
      idempotent: true,
      storesResponse: true,
      params: deliveryParams,
      body: Replay,
      response: Replayed,
      handler: async (input) => {
        const { uid: factoryUid, webhookUid, deliveryUid } = input.params;
        const { automation_uid: automationUid, dry_run: dryRun = false } = input.body;
        const { wouldTrigger, decision } = await automations.replayDelivery(
          {
            factoryUid,
            webhookUid,
            deliveryUid,
            automationUid,
            dryRun,
            idempotencyKey: input.request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return replayRecord(wouldTrigger, decision!);
      },
    }),
  ];
}

const refOf = ({ uid, automationUid }: z.output<typeof automationParams>) => ({ factoryUid: uid, automationUid });
const decisionQuery = ({ event_uid: eventUid = "", limit, cursor: token = "" }: z.output<typeof aboutEvents>) => ({
  eventUid,
  pageSize: limit,
  pageToken: token,
});
const decisionsOf = (page: Awaited<ReturnType<Upstreams["automations"]["listDecisions"]>>) => ({
  decisions: page.decisions.map(decisionRecord),
  page_info: pageInfo(page.nextPageToken),
});
