import { table } from "@millwright/terminal";
import { textOption, textOptions, type Command, type Values } from "../command.ts";

type TeamEvent = { sequence: number; event_type: string; run_id: string; occurred_at: string };

const OPTIONS = { since: { type: "string" }, run: { type: "string", multiple: true } } as const;
const asked = (values: Values) => ({ since: textOption(values, "since"), run_ids: textOptions(values, "run") });

/** What becomes of a team's runs. */
export const eventCommands: Command[] = [
  {
    words: "event list",
    args: [],
    options: OPTIONS,
    summary: "What became of the team's runs, oldest first; --since SEQUENCE, --run RUN (again for more).",
    run: async (cli, _args, values) => {
      const events: TeamEvent[] = [];
      let cursor: string | undefined;
      do {
        const page = await cli
          .api()
          .get<{ events: TeamEvent[]; page_info: { next_cursor?: string } }>("/agent/events", {
            ...asked(values),
            limit: 500,
            cursor,
          });
        events.push(...page.events);
        cursor = page.page_info.next_cursor;
      } while (cursor !== undefined);
      cli.show(events, () =>
        table(
          ["SEQUENCE", "WHEN", "RUN", "EVENT"],
          events.map((one) => [String(one.sequence), one.occurred_at, one.run_id, one.event_type]),
        ),
      );
    },
  },
  {
    words: "event watch",
    args: [],
    options: OPTIONS,
    summary: "What becomes of the team's runs from now on (or --since SEQUENCE), a line each, until it is stopped.",
    run: async (cli, _args, values) => {
      const { since, run_ids: runIds } = asked(values);
      const query = new URLSearchParams(since === undefined ? {} : { since });
      for (const id of runIds) query.append("run_ids", id);
      for await (const { event, data } of cli.api().events(`/agent/events?${query.toString()}`)) {
        if (event === "open") continue;
        const told = JSON.parse(data) as TeamEvent;
        if (cli.isJson) cli.printJson(data);
        else cli.print(`${told.sequence}  ${told.occurred_at}  ${told.run_id}  ${told.event_type}`);
      }
    },
  },
];
