import { table } from "@millwright/terminal";
import { checkedId, numberOf, textOption, UsageError, type Cli, type Command, type Values } from "../command.ts";
import { FACTORY, factoryPath } from "../which-factory.ts";
import { teamOf } from "./access.ts";

/** How the queued runs of a team, factory or agent are started. The priority is an agent's, the weight a team's. */
type QueueSettings = {
  uid: string;
  concurrency_limit: number;
  queue_paused: boolean;
  queue_priority?: number;
  queue_weight?: number;
};
type Target = { readonly kind: "team" | "factory" | "agent"; readonly path: string; readonly method: "PATCH" | "PUT" };

const OPTIONS = { ...FACTORY, agent: { type: "string" as const } };
const OF_TARGET = "of the team, or of --factory FACTORY or --agent UID";

async function targetOf(cli: Cli, values: Values): Promise<Target> {
  const agent = textOption(values, "agent");
  const isFactory = textOption(values, "factory") !== undefined;
  if (agent !== undefined && isFactory) throw new UsageError("Give --factory or --agent, not both.");
  if (agent !== undefined)
    return { kind: "agent", path: `/agent/identities/${checkedId(agent, "agent")}`, method: "PUT" };
  if (isFactory) return { kind: "factory", path: await factoryPath(cli, values), method: "PATCH" };
  return { kind: "team", path: `/team/${await teamOf(cli, textOption(values, "team"))}`, method: "PATCH" };
}

async function change(cli: Cli, { kind, path, method }: Target, body: Partial<QueueSettings>): Promise<void> {
  show(cli, kind, await cli.api().request<QueueSettings>(method, path, { body }));
}

const show = (cli: Cli, kind: Target["kind"], settings: QueueSettings): void =>
  cli.show(settings, () =>
    table(
      ["OF", "UID", "CONCURRENCY LIMIT", "PAUSED", "PRIORITY", "WEIGHT"],
      [
        [
          kind,
          settings.uid,
          settings.concurrency_limit === 0 ? "default" : String(settings.concurrency_limit),
          settings.queue_paused ? "yes" : "no",
          String(settings.queue_priority ?? ""),
          String(settings.queue_weight ?? ""),
        ],
      ],
    ),
  );

const pausing = (words: string, summary: string, isPaused: boolean): Command => ({
  words,
  args: [],
  options: OPTIONS,
  summary,
  run: async (cli, _args, values) => change(cli, await targetOf(cli, values), { queue_paused: isPaused }),
});

/** How queued runs are started. */
export const queueCommands: Command[] = [
  {
    words: "queue get",
    args: [],
    options: OPTIONS,
    summary: `Show the queue settings ${OF_TARGET}.`,
    run: async (cli, _args, values) => {
      const { kind, path } = await targetOf(cli, values);
      show(cli, kind, await cli.api().get<QueueSettings>(path));
    },
  },
  {
    words: "queue set",
    args: [],
    options: {
      ...OPTIONS,
      "concurrency-limit": { type: "string" },
      priority: { type: "string" },
      weight: { type: "string" },
    },
    summary: `Change the queue settings ${OF_TARGET}: --concurrency-limit (0: the platform's), --priority (of an agent), --weight (of a team; platform administrators).`,
    run: async (cli, _args, values) => {
      const target = await targetOf(cli, values);
      const number = (option: string): number | undefined => {
        const text = textOption(values, option);
        return text === undefined ? undefined : numberOf(text, `--${option}`);
      };
      const settings = {
        concurrency_limit: number("concurrency-limit"),
        queue_priority: number("priority"),
        queue_weight: number("weight"),
      };
      if (settings.queue_priority !== undefined && target.kind !== "agent")
        throw new UsageError("Only an agent has a priority: give --agent UID.");
      if (settings.queue_weight !== undefined && target.kind !== "team")
        throw new UsageError("Only a team has a weight: omit --factory and --agent.");
      if (Object.values(settings).every((value) => value === undefined))
        throw new UsageError("Give --concurrency-limit, --priority or --weight.");
      await change(cli, target, settings);
    },
  },
  pausing("queue pause", `Start no more queued runs ${OF_TARGET}; active runs continue.`, true),
  pausing("queue resume", `Start queued runs ${OF_TARGET} again.`, false),
];
