import { table } from "@millwright/terminal";
import { EXIT, textOption, type Cli, type Command } from "../command.ts";
import { readJson } from "../files.ts";
import { FACTORY, factoryPath } from "../which-factory.ts";

type Trigger = { provider: string; event: string };
type Automation = {
  uid: string;
  name: string;
  enabled: boolean;
  agent: string | null;
  prompt: string;
  triggers: Trigger[];
  management: string;
  last_fired_at: string | null;
};
type Decision = {
  event_uid: string;
  automation: string;
  provider: string;
  event: string;
  outcome: string;
  explanation: string;
  run_id: string | null;
  decided_at: string;
  next_attempt_at?: string | null;
};

const triggersOf = ({ triggers }: Automation): string =>
  triggers.map(({ provider, event }) => `${provider} ${event}`).join(", ");
const describe = (automation: Automation): string =>
  `automation ${automation.uid} (${automation.name})${automation.enabled ? "" : ", disabled"}${automation.management === "files" ? ", of files" : ""}\nby ${triggersOf(automation)}\nfor ${automation.agent ?? "the foreman"}: ${automation.prompt}`;
export type Replayed = { would_trigger: boolean; label: string; decision: Decision };
export const replayText = ({ label, decision }: Replayed): string => `${label}\n${describeDecision(decision)}`;
const describeDecision = (decision: Decision): string =>
  `${decision.outcome}: ${decision.explanation}${decision.run_id === null ? "" : `\nrun ${decision.run_id}`}`;

const why = ({ explanation, next_attempt_at: next }: Decision): string =>
  next ? `${explanation} Next attempt: ${next}.` : explanation;

const enableCommand = (action: "enable" | "disable", summary: string): Command => ({
  words: `automation ${action}`,
  args: ["AUTOMATION"],
  options: FACTORY,
  summary,
  run: async (cli, [uid], values) => {
    const path = await factoryPath(cli, values, "automations", uid!);
    const current = await cli.api().get<Automation>(path);
    const changed = await cli
      .api()
      .request<Automation>("PUT", path, { body: { ...current, enabled: action === "enable" } });
    cli.show(changed, () => describe(changed));
  },
});

const showDecisions = (cli: Cli, decisions: Decision[]): void =>
  cli.show(decisions, () =>
    table(
      ["DECIDED", "AUTOMATION", "EVENT", "OUTCOME", "RUN", "WHY"],
      decisions.map((decision) => [
        decision.decided_at,
        decision.automation,
        `${decision.provider} ${decision.event}`,
        decision.outcome,
        decision.run_id ?? "",
        why(decision),
      ]),
    ),
  );

/** Automations of factories. */
export const automationCommands: Command[] = [
  {
    words: "automation create",
    args: ["FILE"],
    options: FACTORY,
    summary: "Create an automation from a JSON file: name, prompt, triggers, and the other keys of an automation.",
    run: async (cli, [file], values) => {
      const made = await cli
        .api()
        .post<Automation>(await factoryPath(cli, values, "automations"), await readJson(file!));
      cli.show(made, () => describe(made));
    },
  },
  {
    words: "automation list",
    args: [],
    options: FACTORY,
    summary: "List a factory's automations.",
    run: async (cli, _args, values) => {
      const { automations } = await cli
        .api()
        .get<{ automations: Automation[] }>(`${await factoryPath(cli, values, "automations")}?limit=100`);
      cli.show(automations, () =>
        table(
          ["AUTOMATION", "NAME", "ENABLED", "TRIGGERS", "LAST FIRED"],
          automations.map((automation) => [
            automation.uid,
            automation.name,
            automation.enabled ? "yes" : "no",
            triggersOf(automation),
            automation.last_fired_at ?? "never",
          ]),
        ),
      );
    },
  },
  {
    words: "automation get",
    args: ["AUTOMATION"],
    options: FACTORY,
    summary: "Show an automation.",
    run: async (cli, [uid], values) => {
      const automation = await cli.api().get<Automation>(await factoryPath(cli, values, "automations", uid!));
      cli.show(automation, () => describe(automation));
    },
  },
  enableCommand("enable", "Let it fire."),
  enableCommand("disable", "Let it fire no more, until it is enabled."),
  {
    words: "automation run",
    args: ["AUTOMATION"],
    options: FACTORY,
    summary: "Start a run of an automation now, independent of its triggers.",
    run: async (cli, [uid], values) => {
      const decision = await cli.api().post<Decision>(await factoryPath(cli, values, "automations", uid!, "run"), {});
      cli.show(decision, () => describeDecision(decision));
    },
  },
  {
    words: "automation decisions",
    args: ["[AUTOMATION]"],
    options: { ...FACTORY, event: { type: "string" } },
    summary: "List decisions: why it fired or did not, newest first; --event selects an event or a delivery.",
    run: async (cli, [uid], values) => {
      const event = textOption(values, "event");
      const path =
        uid === undefined
          ? await factoryPath(cli, values, "decisions")
          : await factoryPath(cli, values, "automations", uid, "decisions");
      showDecisions(
        cli,
        (await cli.api().get<{ decisions: Decision[] }>(`${path}${event === undefined ? "" : `?event_uid=${event}`}`))
          .decisions,
      );
    },
  },
  {
    words: "automation replay",
    args: ["AUTOMATION", "WEBHOOK", "DELIVERY"],
    options: { ...FACTORY, "dry-run": { type: "boolean" } },
    summary: "Evaluate a stored delivery again and start a run if it matches; exit code 1 if it does not.",
    run: async (cli, [uid, webhook, delivery], values) => {
      const replayed = await cli
        .api()
        .post<Replayed>(await factoryPath(cli, values, "webhooks", webhook!, "deliveries", delivery!, "replay"), {
          automation_uid: uid,
          dry_run: values["dry-run"] === true,
        });
      cli.show(replayed, () => replayText(replayed));
      return replayed.would_trigger ? EXIT.done : EXIT.failed;
    },
  },
  {
    words: "automation delete",
    args: ["AUTOMATION"],
    options: FACTORY,
    summary: "Delete an automation; its runs and decisions are retained.",
    run: async (cli, [uid], values) => {
      await cli.api().request("DELETE", await factoryPath(cli, values, "automations", uid!));
      cli.show({ uid, deleted: true }, () => `automation ${uid} is deleted.`);
    },
  },
];
