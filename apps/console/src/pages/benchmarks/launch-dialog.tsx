import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { TextField } from "../../ui/text-field.tsx";

type Suite = components["schemas"]["BenchmarkSuiteWithTasks"];
const DEFAULT_REPETITIONS = 5;
const DEFAULT_PARALLELISM = 4;

/** Launches a benchmark run of a suite and opens it. */
export function LaunchDialog({ suite, onClose }: { suite: Suite; onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [repetitions, setRepetitions] = useState(`${DEFAULT_REPETITIONS}`);
  const [parallelism, setParallelism] = useState(`${DEFAULT_PARALLELISM}`);
  const [tasks, setTasks] = useState<readonly string[]>(suite.tasks.map(({ uid }) => uid));
  const body = { repetition_count: Number(repetitions), parallelism: Number(parallelism), tasks: [...tasks] };
  const header = useIdempotencyKey(body);
  const launch = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs", {
          params: { path: { factory_uid: suite.factory_uid, suite_uid: suite.uid }, header },
          body,
        }),
      ),
    onSuccess: ({ uid }) => {
      void queries.invalidateQueries({ queryKey: ["runs", "benchmark", suite.uid] });
      void navigate({
        to: "/benchmarks/$factoryUid/$suiteUid/runs/$runUid",
        params: { factoryUid: suite.factory_uid, suiteUid: suite.uid, runUid: uid },
      });
    },
  });
  const configurations = suite.configurations?.length ?? 0;
  return (
    <FormDialog
      title="Launch a benchmark run"
      action="Launch"
      isPending={launch.isPending}
      isInvalid={tasks.length === 0}
      error={launch.error}
      onSubmit={() => launch.mutate()}
      onClose={onClose}
    >
      <TextField
        label="Repetitions of each task"
        type="number"
        min={1}
        required
        value={repetitions}
        onChange={setRepetitions}
      />
      <TextField
        label="Concurrent trials"
        type="number"
        min={1}
        required
        value={parallelism}
        onChange={setParallelism}
      />
      <fieldset className="task-choice">
        <legend>Tasks</legend>
        {suite.tasks.map(({ uid, title }) => (
          <label key={uid}>
            <input
              type="checkbox"
              checked={tasks.includes(uid)}
              onChange={({ target }) =>
                setTasks(target.checked ? [...tasks, uid] : tasks.filter((each) => each !== uid))
              }
            />{" "}
            <SafeText>{title}</SafeText>
          </label>
        ))}
      </fieldset>
      <p className="soft">
        {tasks.length} tasks × {configurations} configurations × {body.repetition_count} repetitions:{" "}
        <strong>{tasks.length * configurations * body.repetition_count} trials</strong>, each an ordinary run with its
        cost.
      </p>
    </FormDialog>
  );
}
