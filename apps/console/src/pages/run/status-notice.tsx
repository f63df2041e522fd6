import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { ModelLinks } from "../../app/model-notice.tsx";
import type { components } from "../../gen/api.ts";
import { SafeText } from "../../ui/safe-text.tsx";

type RunItem = components["schemas"]["RunItem"];

type Props = {
  readonly run: RunItem;
  /** Whether the run waits because it has neither an AI model nor a script. */
  readonly isWithoutModel: boolean;
};

/** States why a run waits or how it ended. */
export function StatusNotice({ run, isWithoutModel }: Props): ReactNode {
  if (run.state === "QUEUED") return <QueueNotice runId={run.run_id} />;
  const { status_message: status } = run;
  if (!status || run.state === "SUCCEEDED") return null;
  const isBad = run.state === "FAILED" || run.state === "ERROR";
  return (
    <div className={isBad ? "notice bad" : "notice"} role="status">
      <p>
        <SafeText>{status.message}</SafeText>
      </p>
      {status.error_code !== undefined && (
        <p className="soft small">
          Error code: {status.error_code}
          {status.retryable ? " · a retry may succeed" : ""}
        </p>
      )}
      {run.state === "BLOCKED" && isWithoutModel && <ModelLinks />}
      {run.state === "BLOCKED" && (
        <p className="soft">
          {isWithoutModel
            ? "This run keeps its model. After adding a key, dispatch the work again, or continue this run with a script."
            : "Answer with a follow-up below to continue the run."}
        </p>
      )}
    </div>
  );
}

function QueueNotice({ runId }: { runId: string }): ReactNode {
  const { data } = useQuery({
    queryKey: ["run", runId, "queue"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/runs/{runId}/queue", { params: { path: { runId } }, signal })),
    refetchInterval: 5_000,
  });
  if (!data || data.state !== "QUEUED") return null;
  return (
    <div className="notice" role="status">
      <p>
        <SafeText>{data.message}</SafeText>
      </p>
      <p className="soft small">
        {data.reason}
        {data.owner_position !== undefined && ` · position ${data.owner_position} of its owner`}
      </p>
    </div>
  );
}
