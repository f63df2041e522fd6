import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import type { components } from "../../gen/api.ts";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { eventText, withStageNames } from "./trigger-text.ts";

type Decision = components["schemas"]["AutomationDecision"];

const OUTCOMES: Readonly<Record<Decision["outcome"], readonly [look: string, text: string]>> = {
  pending: ["busy", "Pending"],
  fired: ["good", "Fired"],
  continued: ["good", "Continued"],
  not_matched: ["", "Not matched"],
  disabled: ["", "Disabled"],
  suppressed: ["wait", "Suppressed"],
  failed: ["bad", "Failed"],
  not_listening: ["", "Not listening"],
};

const SUBJECT_CHARACTERS_MAX = 80;

/** Attribute of an event about a task. It is shown as a link. */
const TASK = "task_uid";

/** Returns the short attributes of an event. */
const subjectText = (provider: string, subject: Decision["subject"]): string =>
  Object.entries(subject)
    .flatMap(([name, value]) =>
      name !== TASK &&
      ((typeof value === "string" && value.length <= SUBJECT_CHARACTERS_MAX) || typeof value === "number")
        ? [`${name.replaceAll("_", " ")}: ${textOf(provider, String(value))}`]
        : [],
    )
    .join(", ");

/** Returns a text of the API, with the stages of tasks as the board names them. */
const textOf = (provider: string, text: string): string => (provider === "factory" ? withStageNames(text) : text);

/** Shows why an automation did or did not fire, with the result of each trigger. */
export const Why = ({ decision }: { decision: Decision }): ReactNode => (
  <div className="stack">
    {/* the explanation of a single trigger is its detail */}
    {decision.checks.every(({ detail }) => detail !== decision.explanation) && (
      <SafeText>{textOf(decision.provider, decision.explanation)}</SafeText>
    )}
    {decision.checks.length > 0 && (
      <ul className="checks">
        {decision.checks.map(({ trigger, passed, detail, failed }) => (
          <li key={trigger}>
            <span className={`badge ${passed ? "good" : "bad"}`}>
              {`Trigger ${trigger + 1} ${passed ? "matches" : "does not match"}`}
            </span>{" "}
            <SafeText>{textOf(decision.provider, detail)}</SafeText>
            <FailedPaths paths={failed.filter((path) => !detail.includes(path))} />
          </li>
        ))}
      </ul>
    )}
    {decision.next_attempt_at !== null && (
      <span className="soft small">
        Next request to the code host: <Time at={decision.next_attempt_at} />
      </span>
    )}
  </div>
);

/** Shows the paths of a filter that do not match. */
const FailedPaths = ({ paths }: { paths: readonly string[] }): ReactNode =>
  paths.length > 0 && (
    <>
      {" "}
      <code>
        <SafeText>{paths.join(", ")}</SafeText>
      </code>
    </>
  );

export const OutcomeBadge = ({ outcome }: Pick<Decision, "outcome">): ReactNode => {
  const [look, text] = OUTCOMES[outcome];
  return <span className={`badge ${look}`}>{text}</span>;
};

const automationColumn = (factoryUid: string): Column<Decision> => ({
  title: "Automation",
  cell: ({ automation, automation_uid: automationUid }) => (
    <Link to="/factories/$factoryUid/automations/$automationUid" params={{ factoryUid, automationUid }}>
      <SafeText>{automation}</SafeText>
    </Link>
  ),
});

const columnsOf = (factoryUid: string, isOfOneAutomation: boolean): readonly Column<Decision>[] => [
  { title: "Decided", cell: ({ decided_at: at }) => <Time at={at} /> },
  ...(isOfOneAutomation ? [] : [automationColumn(factoryUid)]),
  {
    title: "Event",
    cell: ({ provider, event, event_uid: uid, subject }) => (
      <div className="stack">
        <Link to="/factories/$factoryUid/decisions" params={{ factoryUid }} search={{ event: uid }}>
          <SafeText>{eventText(provider, event)}</SafeText>
        </Link>
        <span className="soft small">
          <SafeText>{subjectText(provider, subject)}</SafeText>
        </span>
        {subject[TASK] !== undefined && (
          <Link to="/work" search={{ factory: factoryUid }} className="small">
            Board
          </Link>
        )}
      </div>
    ),
  },
  { title: "Outcome", cell: ({ outcome }) => <OutcomeBadge outcome={outcome} /> },
  { title: "Why", cell: (decision) => <Why decision={decision} /> },
  {
    title: "Run",
    cell: ({ run_id: runId }) =>
      runId === null ? (
        "–"
      ) : (
        <Link to="/runs/$runId" params={{ runId }}>
          Run
        </Link>
      ),
  },
];

/** Decisions of automations, each with its reason. */
export const DecisionTable = ({
  factoryUid,
  decisions,
  isOfOneAutomation = false,
}: {
  factoryUid: string;
  decisions: readonly Decision[];
  /** Whether the page names the automation already. */
  isOfOneAutomation?: boolean;
}): ReactNode => (
  <DataTable
    caption="Decisions"
    columns={columnsOf(factoryUid, isOfOneAutomation)}
    rows={decisions}
    keyOf={({ event_uid: event, automation_uid: automation }) => `${event} ${automation}`}
  />
);
