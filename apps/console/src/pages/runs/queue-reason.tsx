import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { SafeText } from "../../ui/safe-text.tsx";

const REFRESH_MS = 10_000;

/** Why a queued run waits. */
export function QueueReason({ runId }: { runId: string }): ReactNode {
  const { data } = useQuery({
    queryKey: ["run", runId, "queue"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/runs/{runId}/queue", { params: { path: { runId } }, signal })),
    refetchInterval: REFRESH_MS,
  });
  if (data?.state !== "QUEUED") return null;
  return (
    <div className="soft small">
      <SafeText>{data.message}</SafeText>
    </div>
  );
}
