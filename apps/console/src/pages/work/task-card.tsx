import type { KeyboardEvent, ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { Button } from "../../ui/button.tsx";
import { Menu, MenuChoice, MenuLabel } from "../../ui/menu.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { STAGES, type Stage } from "../../ui/task-stages.ts";
import { Time } from "../../ui/time.tsx";
import type { Task } from "./tasks.ts";

const STEP_BY_KEY: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 };

/** A task with the live state of its current run. */
export function TaskCard({ task, onMove }: { task: Task; onMove: ((stage: Stage) => void) | undefined }): ReactNode {
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = STEP_BY_KEY[event.key];
    if (!onMove || step === undefined || !event.altKey) return;
    event.preventDefault();
    const next = STAGES[STAGES.findIndex(([stage]) => stage === task.stage) + step];
    if (next) onMove(next[0]);
  };
  return (
    <article className="task-card" onKeyDown={onKeyDown}>
      <div className="task-head">
        <Link
          to="/runs/$runId"
          params={{ runId: task.current_run?.run_id ?? task.run_id }}
          title={onMove && "Alt + arrow keys move the task"}
        >
          <SafeText>{task.title}</SafeText>
        </Link>
        {onMove && (
          <Menu
            trigger={
              <Button look="quiet" isIcon isSmall aria-label={`Move ${task.title}`}>
                <Ellipsis size={14} aria-hidden />
              </Button>
            }
          >
            <MenuLabel>Move to</MenuLabel>
            {STAGES.map(([stage, label]) => (
              <MenuChoice
                key={stage}
                isChosen={stage === task.stage}
                onSelect={() => stage !== task.stage && onMove(stage)}
              >
                {label}
              </MenuChoice>
            ))}
          </Menu>
        )}
      </div>
      <div className="task-foot">
        {task.current_run && <StateBadge state={task.current_run.state} />}
        {task.ticket_id !== undefined && (
          <span className="badge plain">
            <SafeText>{task.ticket_id}</SafeText>
          </span>
        )}
        <Link to="/conversations/$conversationId" params={{ conversationId: task.conversation_id }} className="small">
          Conversation
        </Link>
        <span className="soft small">
          <Time at={task.updated_at} />
        </span>
      </div>
    </article>
  );
}
