import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, UsageError, type Cli, type Command, type Values } from "../command.ts";
import { readText } from "../files.ts";

type Schedule = {
  id: string;
  name: string;
  cron_schedule: string;
  time_zone: string | null;
  enabled: boolean;
  prompt: string;
  agent_config?: object;
  agent_uid?: string;
  mode?: string;
  metadata?: object;
  overlap_policy: string;
  catch_up_seconds: number;
  history: { last_ran: string | null; next_run: string | null };
  last_spawn_error: string | null;
};
type Slot = { slot_at: string; state: string; reason?: string; message?: string; run_id?: string };

const SETTINGS = {
  prompt: { type: "string" },
  file: { type: "string" },
  zone: { type: "string" },
  agent: { type: "string" },
  overlap: { type: "string", choices: CHOICES.overlaps },
} as const;

const nextOf = ({ enabled, history }: Schedule): string => (enabled ? (history.next_run ?? "never") : "paused");
const line = (schedule: Schedule): string =>
  `schedule ${schedule.id} (${schedule.name}): ${schedule.cron_schedule}${schedule.time_zone ? ` ${schedule.time_zone}` : ""}, next ${nextOf(schedule)}`;

async function promptOf(values: Values): Promise<string | undefined> {
  const file = textOption(values, "file");
  return file === undefined ? textOption(values, "prompt") : readText(file);
}

/** Returns the given options by the names of the API. */
const given = async (values: Values): Promise<Record<string, string>> => {
  const named = {
    prompt: await promptOf(values),
    time_zone: textOption(values, "zone"),
    agent_uid: textOption(values, "agent"),
    overlap_policy: textOption(values, "overlap"),
  };
  return Object.fromEntries(Object.entries(named).filter((entry): entry is [string, string] => entry[1] !== undefined));
};

const switching = (verb: "pause" | "resume", summary: string): Command => ({
  words: `schedule ${verb}`,
  args: ["SCHEDULE"],
  summary,
  run: async (cli: Cli, [id]) => {
    const schedule = await cli.api().post<Schedule>(`/agent/schedules/${id}/${verb}`);
    cli.show(schedule, () => line(schedule));
  },
});

/** Schedules: runs that start at set times. */
export const scheduleCommands: Command[] = [
  {
    words: "schedule create",
    args: ["NAME", "CRON"],
    options: SETTINGS,
    summary:
      "Create a schedule that starts runs by a cron expression, with --prompt TEXT or --file FILE; --zone, --agent, --overlap.",
    run: async (cli, [name, cron], values) => {
      const settings = await given(values);
      if (!settings["prompt"]) throw new UsageError("Give --prompt TEXT or --file FILE.");
      const schedule = await cli.api().post<Schedule>("/agent/schedules", { name, cron_schedule: cron, ...settings });
      cli.show(schedule, () => line(schedule));
    },
  },
  {
    words: "schedule list",
    args: [],
    summary: "List schedules by name.",
    run: async (cli) => {
      const { schedules } = await cli.api().get<{ schedules: Schedule[] }>("/agent/schedules");
      cli.show(schedules, () =>
        table(
          ["SCHEDULE", "NAME", "CRON", "ZONE", "NEXT"],
          schedules.map((schedule) => [
            schedule.id,
            schedule.name,
            schedule.cron_schedule,
            schedule.time_zone ?? "UTC",
            nextOf(schedule),
          ]),
        ),
      );
    },
  },
  {
    words: "schedule get",
    args: ["SCHEDULE"],
    summary: "Show one schedule.",
    run: async (cli, [id]) => {
      const schedule = await cli.api().get<Schedule>(`/agent/schedules/${id}`);
      cli.show(schedule, () =>
        [line(schedule), schedule.last_spawn_error ?? "", schedule.prompt].filter(Boolean).join("\n"),
      );
    },
  },
  {
    words: "schedule update",
    args: ["SCHEDULE"],
    options: { ...SETTINGS, name: { type: "string" }, cron: { type: "string" } },
    summary: "Change settings of a schedule: --name, --cron, --prompt, --file, --zone, --agent, --overlap.",
    run: async (cli, [id], values) => {
      const {
        agent_config: _config,
        id: _id,
        history: _history,
        last_spawn_error: _error,
        ...settings
      } = await cli.api().get<Schedule>(`/agent/schedules/${id}`);
      const [name, cron] = [textOption(values, "name"), textOption(values, "cron")];
      const body = {
        ...settings,
        ...(name !== undefined && { name }),
        ...(cron !== undefined && { cron_schedule: cron }),
        ...(await given(values)),
      };
      const schedule = await cli.api().request<Schedule>("PUT", `/agent/schedules/${id}`, { body });
      cli.show(schedule, () => line(schedule));
    },
  },
  switching("pause", "Pause a schedule."),
  switching("resume", "Let a schedule come due again, from the next slot on."),
  {
    words: "schedule delete",
    args: ["SCHEDULE"],
    summary: "Delete a schedule; its runs are retained.",
    run: async (cli, [id]) => {
      const deleted = await cli.api().request<{ success: boolean }>("DELETE", `/agent/schedules/${id}`);
      cli.show(deleted, () => `schedule ${id} is deleted.`);
    },
  },
  {
    words: "schedule slots",
    args: ["SCHEDULE"],
    options: { state: { type: "string", choices: CHOICES.slotStates }, limit: { type: "string" } },
    summary: "List the slots of a schedule with their states, newest first.",
    run: async (cli, [id], values) => {
      const { slots } = await cli.api().get<{ slots: Slot[] }>(`/agent/schedules/${id}/slots`, {
        state: textOption(values, "state"),
        limit: textOption(values, "limit"),
      });
      cli.show(slots, () =>
        table(
          ["SLOT", "STATE", "RUN OR REASON"],
          slots.map((slot) => [
            slot.slot_at,
            slot.state,
            slot.run_id ?? [slot.reason, slot.message].filter(Boolean).join(": "),
          ]),
        ),
      );
    },
  },
];
