import { table } from "@millwright/terminal";
import { textOption, textOptions, type Command, type Values } from "../command.ts";
import { listAll } from "../list-all.ts";

type TeamEvent = { sequence: number; event_type: string; run_id: string; occurred_at: string };

const OPTIONS = { since: { type: "string" }, run: { type: "string", multiple: true } } as const;
const eventQuery = (values: Values) => ({ since: textOption(values, "since"), run_ids: textOptions(values, "run") });

/** Lifecycle events of a team's runs. */
export const eventCommands: Command[] = [
  {
    words: "event list",
    args: [],
    options: OPTIONS,
    summary: "List lifecycle events of the team's runs, oldest first; --since SEQUENCE, --run RUN (repeatable).",
    run: async (cli, _args, values) => {
      const events = await listAll<TeamEvent>(cli, "/agent/events", "events", { ...eventQuery(values), limit: 500 });
      cli.show(events, () =>
        table(
          ["SEQUENCE", "WHEN", "RUN", "EVENT"],
          events.map((event) => [String(event.sequence), event.occurred_at, event.run_id, event.event_type]),
        ),
      );
    },
  },
  {
    words: "event watch",
    args: [],
    options: OPTIONS,
    summary:
      "Print lifecycle events of the team's runs from now on (or --since SEQUENCE), one per line, until stopped.",
    run: async (cli, _args, values) => {
      const { since, run_ids: runIds } = eventQuery(values);
      const query = new URLSearchParams(since === undefined ? {} : { since });
      for (const id of runIds) query.append("run_ids", id);
      for await (const { event, data } of cli.api().events(`/agent/events?${query.toString()}`)) {
        if (event === "open") continue;
        const received = JSON.parse(data) as TeamEvent;
        if (cli.isJson) cli.printJson(data);
        else cli.print(`${received.sequence}  ${received.occurred_at}  ${received.run_id}  ${received.event_type}`);
      }
    },
  },
];
