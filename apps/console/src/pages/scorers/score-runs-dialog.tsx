import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { listRuns } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { StateBadge } from "../../ui/state-badge.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type Scorer = components["schemas"]["ListedScorer"];
const RUNS_MAX = 50;

/** Starts judging chosen runs of the scorer's factory now. */
export function ScoreRunsDialog({ scorer, onClose }: { scorer: Scorer; onClose: () => void }): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const { data } = useQuery({
    queryKey: ["runs", "of-factory", scorer.factory_uid],
    queryFn: ({ signal }) =>
      listRuns(
        {
          factory_uid: [scorer.factory_uid],
          state: ["SUCCEEDED", "FAILED", "ERROR", "CANCELLED"],
          sort_by: "created_at",
          limit: RUNS_MAX,
        },
        signal,
      ),
  });
  const dispatch = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{factory_uid}/scorers/{scorer_uid}/dispatch", {
          params: { path: { factory_uid: scorer.factory_uid, scorer_uid: scorer.uid } },
          body: { run_ids: [...chosen] },
        }),
      ),
    onSuccess: ({ results }) => {
      const failed = results.filter(({ status }) => status === "failed");
      if (results.length > failed.length)
        toasts.success(`${results.length - failed.length} of ${results.length} runs are being judged.`);
      for (const { error } of failed) toasts.failure(error ?? "A run could not be judged.");
      void queries.invalidateQueries({ queryKey: ["scorers", scorer.factory_uid] });
      onClose();
    },
  });
  const toggle = (id: string): void =>
    setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <FormDialog
      title="Judge runs"
      action={`Judge ${chosen.length} ${chosen.length === 1 ? "run" : "runs"}`}
      isPending={dispatch.isPending}
      isInvalid={chosen.length === 0}
      error={dispatch.error}
      onSubmit={() => dispatch.mutate()}
      onClose={onClose}
    >
      <fieldset className="checks">
        <legend>The newest finished runs of the factory</legend>
        {data?.runs.length === 0 && <p className="soft">No run of the factory has finished.</p>}
        {data?.runs.map(({ run_id: id, title, state }) => (
          <label key={id} className="check">
            <input type="checkbox" checked={chosen.includes(id)} onChange={() => toggle(id)} />
            <StateBadge state={state} />
            <span className="truncate">
              <SafeText>{title}</SafeText>
            </span>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  );
}
