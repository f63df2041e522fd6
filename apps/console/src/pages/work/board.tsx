import { useState, type DragEvent, type ReactNode } from "react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Button } from "../../ui/button.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { count } from "../../ui/money.ts";
import { STAGES, type Stage } from "../../ui/task-stages.ts";
import { TaskCard } from "./task-card.tsx";
import { tasksQuery, useMoveTask, type Task } from "./tasks.ts";

type Props = { readonly factoryUid: string; readonly q: string | undefined; readonly mayMove: boolean };

const DRAG_TYPE = "application/x-millwright-task";

/** One column per stage. A card moves by dragging, by its menu, or with Alt and an arrow key. */
export function Board({ factoryUid, q, mayMove }: Props): ReactNode {
  const move = useMoveTask(factoryUid);
  return (
    <div className="board" role="group" aria-label="Tasks by stage">
      {STAGES.map(([stage, label]) => (
        <Column
          key={stage}
          stage={stage}
          label={label}
          factoryUid={factoryUid}
          q={q}
          onMove={mayMove ? (task, to) => move.mutate({ task, stage: to }) : undefined}
        />
      ))}
    </div>
  );
}

type ColumnProps = {
  readonly stage: Stage;
  readonly label: string;
  readonly factoryUid: string;
  readonly q: string | undefined;
  /** Absent: the caller may not move tasks. */
  readonly onMove: ((task: Pick<Task, "uid" | "title">, stage: Stage) => void) | undefined;
};

function Column({ stage, label, factoryUid, q, onMove }: ColumnProps): ReactNode {
  const [isTarget, setTarget] = useState(false);
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    tasksQuery(factoryUid, stage, q),
  );
  const tasks = data?.pages.flatMap((page) => page.tasks) ?? [];
  const accepts = (event: DragEvent): boolean => onMove !== undefined && event.dataTransfer.types.includes(DRAG_TYPE);
  return (
    <section
      className={isTarget ? "board-column target" : "board-column"}
      aria-label={label}
      onDragOver={(event) => {
        if (!accepts(event)) return;
        event.preventDefault();
        setTarget(true);
      }}
      onDragLeave={() => setTarget(false)}
      onDrop={(event) => {
        setTarget(false);
        if (!accepts(event)) return;
        event.preventDefault();
        const task = JSON.parse(event.dataTransfer.getData(DRAG_TYPE)) as Task;
        if (task.stage !== stage) onMove?.(task, stage);
      }}
    >
      <h2>
        {label} <span className="soft">{`${count(tasks.length)}${hasNextPage ? "+" : ""}`}</span>
      </h2>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      <ul>
        {tasks.map((task) => (
          <li
            key={task.uid}
            draggable={onMove !== undefined}
            onDragStart={(event) => {
              const { uid, title } = task;
              event.dataTransfer.setData(DRAG_TYPE, JSON.stringify({ uid, title, stage }));
              event.dataTransfer.effectAllowed = "move";
            }}
          >
            <TaskCard task={task} onMove={onMove && ((to) => onMove(task, to))} />
          </li>
        ))}
      </ul>
      {data && tasks.length === 0 && <p className="soft small board-empty">No tasks</p>}
      {hasNextPage && (
        <Button isSmall disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more
        </Button>
      )}
    </section>
  );
}
