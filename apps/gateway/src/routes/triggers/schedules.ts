import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import type { Caller } from "@millwright/caller";
import { scheduler } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  cursor,
  PageInfo,
  pageInfo,
  pageLimit,
  pathUid,
  queryList,
  route,
  type RequestInfo,
  type Route,
} from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { TEXT_BODY_BYTES_MAX } from "../runs/run-schemas.ts";
import { ownAgentOf, ownerOf } from "../runs/run-owner.ts";
import { CreateSchedule, ReplaceSchedule, ScheduledAgent, ScheduleSlot, SLOT_STATES } from "./schedule-schemas.ts";

export type ScheduleRoutesDeps = { upstreams: Pick<Upstreams, "schedules" | "catalog">; findProfiles: FindProfiles };

type ScheduleJson = z.input<typeof ScheduledAgent>;
type Input = { caller: Caller; request: RequestInfo };

const params = z.object({ scheduleId: pathUid("schedule") });
const BASE = "/agent/schedules";
const ONE = `${BASE}/{scheduleId}`;

/** Returns the routes of schedules. The slots are a Millwright extension. */
export function scheduleRoutes({ upstreams: { schedules, catalog }, findProfiles }: ScheduleRoutesDeps): Route[] {
  const records = async (found: readonly scheduler.Schedule[], input: Input): Promise<ScheduleJson[]> => {
    const profiles = await findProfiles([
      ...new Set(found.flatMap(({ createdBy, updatedBy }) => [createdBy, updatedBy])),
    ]);
    const environments = found.some((schedule) => environmentOf(schedule) !== undefined)
      ? (await catalog.listEnvironments({ sortBy: "name" }, onBehalf(input))).environments
      : [];
    const configs = new Map(environments.map(({ uid, config }) => [uid, config]));
    return found.map((schedule) => ({
      ...scheduleJson(schedule),
      ...omitUndefined({
        environment: configs.get(environmentOf(schedule) ?? ""),
        created_by: profiles.get(schedule.createdBy),
        updated_by: profiles.get(schedule.updatedBy),
      }),
    }));
  };
  const record = async (schedule: scheduler.Schedule | undefined, input: Input): Promise<ScheduleJson> =>
    (await records([schedule!], input))[0]!;
  const switching = (verb: "pause" | "resume", summary: string, description: string) =>
    route({
      method: "POST",
      path: `${ONE}/${verb}`,
      summary,
      description,
      verbs: ["schedule.manage"],
      errors: [403],
      params,
      response: ScheduledAgent,
      handler: async (input) =>
        record(
          (await schedules.setEnabled({ uid: input.params.scheduleId, enabled: verb === "resume" }, onBehalf(input)))
            .schedule,
          input,
        ),
    });
  return [
    route({
      method: "POST",
      path: BASE,
      summary: "Create a schedule",
      description:
        "Starts a run at each slot of the cron expression. A prompt is required unless agent_config names a skill. `team: false` creates a personal schedule.",
      verbs: ["schedule.manage"],
      errors: [403, 404, 409],
      teamHeader: true,
      idempotent: true,
      status: 201,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      body: CreateSchedule,
      response: ScheduledAgent,
      handler: async (input) => {
        const { body, caller, request } = input;
        const upstreamRequest = create(scheduler.ScheduleSchema, {
          ...settingsOf({ ...body, prompt: body.prompt ?? "" }, caller),
          ...ownerOf(body.team, caller, "schedule"),
        });
        return record(
          (
            await schedules.createSchedule(
              { schedule: upstreamRequest, idempotencyKey: request.idempotency?.key ?? "" },
              onBehalf(input),
            )
          ).schedule,
          input,
        );
      },
    }),
    route({
      method: "GET",
      path: BASE,
      summary: "List schedules",
      description: "All visible schedules, by name.",
      verbs: ["run.view"],
      teamHeader: true,
      response: z.object({ schedules: z.array(ScheduledAgent) }),
      handler: async (input) => {
        const found = await schedules.listSchedules({ teamUid: input.caller.activeTeamUid ?? "" }, onBehalf(input));
        return { schedules: await records(found.schedules, input) };
      },
    }),
    route({
      method: "GET",
      path: ONE,
      summary: "Read a schedule",
      verbs: ["run.view"],
      errors: [403],
      params,
      response: ScheduledAgent,
      handler: async (input) =>
        record((await schedules.getSchedule({ uid: input.params.scheduleId }, onBehalf(input))).schedule, input),
    }),
    route({
      method: "PUT",
      path: ONE,
      summary: "Replace a schedule",
      description:
        "An absent agent_config is unchanged, `{}` clears it. Other absent members get their defaults. Existing runs keep their configuration.",
      verbs: ["schedule.manage"],
      errors: [403],
      params,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      body: ReplaceSchedule,
      response: ScheduledAgent,
      handler: async (input) => {
        const upstreamRequest = create(scheduler.ScheduleSchema, {
          uid: input.params.scheduleId,
          ...settingsOf(input.body, input.caller),
        });
        return record(
          (await schedules.replaceSchedule({ schedule: upstreamRequest }, onBehalf(input))).schedule,
          input,
        );
      },
    }),
    route({
      method: "DELETE",
      path: ONE,
      summary: "Delete a schedule",
      description: "No further runs start. Existing runs continue and are retained.",
      verbs: ["schedule.manage"],
      errors: [403],
      params,
      response: z.object({ success: z.boolean() }),
      handler: async (input) => {
        await schedules.deleteSchedule({ uid: input.params.scheduleId }, onBehalf(input));
        return { success: true };
      },
    }),
    switching("pause", "Pause a schedule", "No slot fires until the schedule is resumed. Idempotent."),
    switching("resume", "Resume a schedule", "The next slot fires. Slots during the pause are not caught up."),
    route({
      method: "GET",
      path: `${ONE}/slots`,
      summary: "List a schedule's slots with their outcomes",
      extension: true,
      description: "Each slot is fired, skipped or missed, with a reason. Newest first.",
      verbs: ["run.view"],
      errors: [403],
      params,
      query: z.object({
        state: queryList(z.enum(SLOT_STATES)).optional(),
        limit: pageLimit(50, 500),
        cursor: cursor(),
      }),
      response: z.object({ slots: z.array(ScheduleSlot), page_info: PageInfo }),
      handler: async (input) => {
        const { state = [], limit, cursor: pageToken = "" } = input.query;
        const page = await schedules.listSlots(
          { scheduleUid: input.params.scheduleId, states: state, pageSize: limit, pageToken },
          onBehalf(input),
        );
        return { slots: page.slots.map(slotJson), page_info: pageInfo(page.nextPageToken) };
      },
    }),
  ];
}

const environmentOf = ({ agentConfig }: scheduler.Schedule): string | undefined =>
  typeof agentConfig?.["environment_id"] === "string" ? agentConfig["environment_id"] : undefined;

const settingsOf = (body: z.output<typeof ReplaceSchedule>, caller: Caller) => ({
  name: body.name,
  cronSchedule: body.cron_schedule,
  enabled: body.enabled,
  prompt: body.prompt,
  mode: body.mode ?? "",
  metadata: body.metadata ?? {},
  overlapPolicy: body.overlap_policy ?? "",
  ...omitUndefined({
    agentConfig: body.agent_config,
    agentUid: body.agent_uid ?? ownAgentOf(caller),
    timeZone: body.time_zone ?? undefined,
    catchUpSeconds: body.catch_up_seconds,
  }),
});

/** Returns the public record of a schedule without profiles and environment, which other services store. */
const scheduleJson = (schedule: scheduler.Schedule): ScheduleJson => ({
  id: schedule.uid,
  name: schedule.name,
  cron_schedule: schedule.cronSchedule,
  time_zone: schedule.timeZone ?? null,
  enabled: schedule.enabled,
  prompt: schedule.prompt,
  prompt_truncated: schedule.promptTruncated ? true : undefined,
  created_at: isoTime(schedule.createdAt!),
  updated_at: isoTime(schedule.updatedAt!),
  mode: (schedule.mode || "normal") as NonNullable<ScheduleJson["mode"]>,
  metadata: schedule.metadata,
  overlap_policy: schedule.overlapPolicy as ScheduleJson["overlap_policy"],
  catch_up_seconds: schedule.catchUpSeconds ?? 0,
  history: {
    last_ran: schedule.lastRanAt ? isoTime(schedule.lastRanAt) : null,
    next_run: schedule.nextRunAt ? isoTime(schedule.nextRunAt) : null,
  },
  last_spawn_error: schedule.lastSpawnError ?? null,
  scope: { type: schedule.ownerType === "team" ? "Team" : "User", uid: schedule.ownerUid },
  ...omitUndefined({ agent_config: schedule.agentConfig, agent_uid: schedule.agentUid }),
});

const slotJson = (slot: scheduler.Slot): z.input<typeof ScheduleSlot> => ({
  slot_at: isoTime(slot.slotAt!),
  state: slot.state as (typeof SLOT_STATES)[number],
  decided_at: slot.decidedAt ? isoTime(slot.decidedAt) : null,
  ...omitUndefined({
    reason: slot.reason || undefined,
    message: slot.message || undefined,
    run_id: slot.runUid || undefined,
  }),
});
