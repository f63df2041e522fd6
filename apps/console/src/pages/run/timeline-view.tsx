import { useEffect, useMemo, useRef, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { isTerminal } from "../../ui/state-badge.tsx";
import type { TimelineItem } from "./timeline.ts";
import { LiveTextRow, TimelineRow } from "./timeline-row.tsx";
import type { useTimeline } from "./use-timeline.ts";

type Show = "all" | "lifecycle" | undefined;
const SHOWS: readonly (readonly [Show, string])[] = [
  [undefined, "Conversation"],
  ["all", "All events"],
  ["lifecycle", "Lifecycle"],
];
/** Events that the conversation shows beside messages and tool calls. */
const TOLD = new Set([
  ...["run_waiting", "run_finished", "child_finished", "followup_undelivered", "worker_lost", "worker_stopped"],
  ...["attempt_failed", "dispatch_failed", "stalled", "limit_exceeded", "warning", "pushed", "egress_denied"],
  ...["agent_resumed", "conversation_summarized", "mcp_server_failed", "debug_window_opened", "interrupt_requested"],
]);
const ESTIMATED_HEIGHT = 56;
/** Distance from the end, in pixels, within which the view follows new steps. */
const FOLLOW_DISTANCE = 80;

const isShown = (item: TimelineItem, show: Show): boolean =>
  show === "all" || (show === "lifecycle" ? item.kind === "event" : item.kind !== "event" || TOLD.has(item.event.kind));

type Props = {
  readonly live: ReturnType<typeof useTimeline>;
  readonly run: components["schemas"]["RunItem"];
};

/** The steps of a run. Only visible rows exist in the document, so 50,000 events stay smooth. */
export function TimelineView({ live: { timeline, version, state }, run }: Props): ReactNode {
  const { show, step } = getRouteApi("/runs/$runId").useSearch();
  const navigate = useNavigate({ from: "/runs/$runId" });
  const frame = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(step === undefined);
  // `version` stands for the content of the timeline, which changes in place
  const items = useMemo(() => timeline.items.filter((item) => isShown(item, show)), [timeline, version, show]);
  const rows = timeline.live ? items.length + 1 : items.length;
  const virtualizer = useVirtualizer({
    count: rows,
    getScrollElement: () => frame.current,
    estimateSize: () => ESTIMATED_HEIGHT,
    getItemKey: (index) => items[index]?.seq ?? "live",
    overscan: 8,
  });
  const target = step === undefined ? -1 : items.findIndex(({ seq }) => String(seq) === step);
  const hasShownTarget = useRef(false);
  useEffect(() => {
    if (target >= 0 && !hasShownTarget.current) {
      hasShownTarget.current = true;
      virtualizer.scrollToIndex(target, { align: "center" });
    } else if (isFollowing.current && rows > 0) virtualizer.scrollToIndex(rows - 1, { align: "end" });
  }, [version, rows, target, virtualizer]);
  const onScroll = (): void => {
    const { scrollHeight, scrollTop, clientHeight } = frame.current!;
    isFollowing.current = scrollHeight - scrollTop - clientHeight < FOLLOW_DISTANCE;
  };
  return (
    <div className="timeline-panel">
      <div className="timeline-head">
        {SHOWS.map(([value, label]) => (
          <Button
            key={label}
            isSmall
            look={show === value ? "default" : "quiet"}
            aria-pressed={show === value}
            onClick={() => void navigate({ search: (old) => ({ ...old, show: value }), replace: true })}
          >
            {label}
          </Button>
        ))}
        <span className="soft small timeline-state" role="status">
          {state === "ended" ? `${timeline.lastSeq} events` : state === "open" ? "Live" : "Connecting…"}
        </span>
        <Button
          isSmall
          isIcon
          look="quiet"
          aria-label="Go to the end"
          onClick={() => {
            isFollowing.current = true;
            virtualizer.scrollToIndex(rows - 1, { align: "end" });
          }}
        >
          <ArrowDown size={14} aria-hidden />
        </Button>
      </div>
      <div
        className="timeline"
        ref={frame}
        onScroll={onScroll}
        tabIndex={0}
        role="region"
        aria-label="Steps of the run"
      >
        {rows === 0 && (
          <p className="soft timeline-empty">
            {isTerminal(run.state) ? "No steps." : "Nothing yet. Steps appear here as they happen."}
          </p>
        )}
        <ol style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map(({ index, key, start }) => {
            const item = items[index];
            return (
              <li
                key={key}
                ref={virtualizer.measureElement}
                data-index={index}
                aria-posinset={index + 1}
                aria-setsize={rows}
                style={{ transform: `translateY(${start}px)` }}
              >
                {item ? (
                  <TimelineRow item={item} run={run} isTarget={index === target} />
                ) : (
                  <LiveTextRow text={timeline.live?.text ?? ""} />
                )}
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}
