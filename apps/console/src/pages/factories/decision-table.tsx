import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import type { components } from "../../gen/api.ts";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";

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

/** Returns the short attributes of an event. */
const subjectText = (subject: Decision["subject"]): string =>
  Object.entries(subject)
    .flatMap(([name, value]) =>
      (typeof value === "string" && value.length <= SUBJECT_CHARACTERS_MAX) || typeof value === "number"
        ? [`${name}: ${value}`]
        : [],
    )
    .join(", ");

/** Shows why an automation did or did not fire, with the result of each trigger. */
export const Why = ({ decision }: { decision: Decision }): ReactNode => (
  <div className="stack">
    {/* the explanation of a single trigger is its detail */}
    {decision.checks.every(({ detail }) => detail !== decision.explanation) && (
      <SafeText>{decision.explanation}</SafeText>
    )}
    {decision.checks.length > 0 && (
      <ul className="checks">
        {decision.checks.map(({ trigger, passed, detail, failed }) => (
          <li key={trigger}>
            <span className={`badge ${passed ? "good" : "bad"}`}>{passed ? "matches" : "does not match"}</span>{" "}
            <SafeText>{`Trigger ${trigger + 1}: ${detail}`}</SafeText>
            {failed.length > 0 && (
              <>
                {" "}
                <code>
                  <SafeText>{failed.join(", ")}</SafeText>
                </code>
              </>
            )}
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

export const OutcomeBadge = ({ outcome }: Pick<Decision, "outcome">): ReactNode => {
  const [look, text] = OUTCOMES[outcome];
  return <span className={`badge ${look}`}>{text}</span>;
};

const columnsOf = (factoryUid: string): readonly Column<Decision>[] => [
  { title: "Decided", cell: ({ decided_at: at }) => <Time at={at} /> },
  {
    title: "Automation",
    cell: ({ automation, automation_uid: automationUid }) => (
      <Link to="/factories/$factoryUid/automations/$automationUid" params={{ factoryUid, automationUid }}>
        <SafeText>{automation}</SafeText>
      </Link>
    ),
  },
  {
    title: "Event",
    cell: ({ provider, event, event_uid: uid, subject }) => (
      <div className="stack">
        <Link to="/factories/$factoryUid/decisions" params={{ factoryUid }} search={{ event: uid }}>
          <SafeText>{`${provider} ${event}`}</SafeText>
        </Link>
        <span className="soft small">
          <SafeText>{subjectText(subject)}</SafeText>
        </span>
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
}: {
  factoryUid: string;
  decisions: readonly Decision[];
}): ReactNode => (
  <DataTable
    caption="Decisions"
    columns={columnsOf(factoryUid)}
    rows={decisions}
    keyOf={({ event_uid: event, automation_uid: automation }) => `${event} ${automation}`}
  />
);
