import { memo, type ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { Bot, CircleDot, Settings2, UserRound } from "lucide-react";
import { describeRunEvent } from "@millwright/terminal/run-progress";
import type { components } from "../../gen/api.ts";
import { Markdown } from "../../ui/markdown.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { artifactHref } from "./artifact-href.ts";
import { textOf, type TimelineItem } from "./timeline.ts";
import { ToolCall } from "./tool-call.tsx";

type Props = {
  readonly item: TimelineItem;
  readonly run: components["schemas"]["RunItem"];
  readonly isTarget: boolean;
};

/** One step, with a link to it. */
export const TimelineRow = memo(function TimelineRow({ item, run, isTarget }: Props): ReactNode {
  return (
    <article
      className={["step", item.kind, item.kind === "message" && item.role, isTarget && "target"]
        .filter(Boolean)
        .join(" ")}
    >
      <StepIcon item={item} />
      <div className="step-body">
        <StepContent item={item} runId={run.run_id} />
      </div>
      <div className="step-side">
        <Time at={item.at} />
        <Link
          to="/runs/$runId"
          params={{ runId: run.run_id }}
          search={(old) => ({ ...old, step: String(item.seq) })}
          replace
          aria-label={`Link to step ${item.seq}`}
        >
          #{item.seq}
        </Link>
      </div>
    </article>
  );
});

function StepIcon({ item }: { item: TimelineItem }): ReactNode {
  const Icon =
    item.kind === "event" ? CircleDot : item.kind === "tool" ? Settings2 : item.role === "user" ? UserRound : Bot;
  return <Icon size={14} aria-hidden className="step-icon" />;
}

function StepContent({ item, runId }: { item: TimelineItem; runId: string }): ReactNode {
  switch (item.kind) {
    case "message":
      return (
        <>
          <span className="visually-hidden">{item.role}: </span>
          <Markdown>{item.text}</Markdown>
        </>
      );
    case "tool":
      return <ToolCall call={item} screenshotUrl={(uid) => artifactHref(runId, uid)} />;
    default:
      return <EventLine item={item} />;
  }
}

function EventLine({ item: { event } }: { item: TimelineItem & { kind: "event" } }): ReactNode {
  const line = describeRunEvent(event);
  const detail = textOf(event.payload["text"]) || textOf(event.payload["summary"]) || textOf(event.payload["output"]);
  return (
    <div className={`event-line ${line?.mark ?? ""}`}>
      <span>
        <SafeText>{line?.text ?? event.kind.replaceAll("_", " ")}</SafeText>
      </span>
      {!line && detail !== "" && (
        <span className="soft">
          <SafeText>{detail}</SafeText>
        </span>
      )}
    </div>
  );
}

/** The text that the model is generating. */
export function LiveTextRow({ text }: { text: string }): ReactNode {
  return (
    <article className="step message assistant">
      <Bot size={14} aria-hidden className="step-icon" />
      <div className="step-body" aria-busy>
        <Markdown>{text}</Markdown>
      </div>
    </article>
  );
}
