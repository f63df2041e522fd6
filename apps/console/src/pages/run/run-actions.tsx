import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Ban, Laptop, Pause, RotateCcw } from "lucide-react";
import { api, dataOf, idempotencyKey } from "../../api/client.ts";
import { useMay, useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { isTerminal } from "../../ui/state-badge.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { HandOverDialog } from "./hand-over-dialog.tsx";

type RunItem = components["schemas"]["RunItem"];

/** Hands over, interrupts, cancels and retries a run. */
export function RunActions({ run }: { run: RunItem }): ReactNode {
  const [isHandingOver, setHandingOver] = useState(false);
  const { isLinkViewer } = useSession();
  return (
    <>
      {!isLinkViewer && (
        <Button onClick={() => setHandingOver(true)}>
          <Laptop size={14} aria-hidden />
          Hand over
        </Button>
      )}
      {isHandingOver && <HandOverDialog run={run} onClose={() => setHandingOver(false)} />}
      <StateActions run={run} />
    </>
  );
}

function StateActions({ run }: { run: RunItem }): ReactNode {
  const mayManage = useMay("run.manage");
  const mayCreate = useMay("run.create");
  const toasts = useToasts();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const params = { path: { runId: run.run_id } };
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["run", run.run_id] });
  const act = (call: () => Promise<unknown>, text: string) => ({
    mutationFn: call,
    onSuccess: () => {
      toasts.success(text);
      void refresh();
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  const interrupt = useMutation(
    act(() => api.POST("/api/v1/agent/runs/{runId}/interrupt", { params }), "The current turn ends."),
  );
  const cancel = useMutation(
    act(
      () =>
        api.POST("/api/v1/agent/runs/{runId}/cancel", {
          params: { ...params, query: { tree: true }, header: idempotencyKey() },
        }),
      "The run and its child runs are cancelled.",
    ),
  );
  const retry = useMutation({
    mutationFn: () =>
      dataOf(api.POST("/api/v1/agent/runs/{runId}/retry", { params: { ...params, header: idempotencyKey() } })),
    onSuccess: ({ run_id: runId }) => void navigate({ to: "/runs/$runId", params: { runId } }),
    onError: (error: unknown) => toasts.failure(error),
  });
  if (isTerminal(run.state))
    return (
      <Button disabled={!mayCreate || retry.isPending} onClick={() => retry.mutate()}>
        <RotateCcw size={14} aria-hidden />
        Retry
      </Button>
    );
  return (
    <>
      {run.state === "INPROGRESS" && (
        <Button disabled={!mayManage || interrupt.isPending} onClick={() => interrupt.mutate()}>
          <Pause size={14} aria-hidden />
          Interrupt
        </Button>
      )}
      <Button
        look="danger"
        disabled={!mayManage || cancel.isPending || run.is_run_type_cancellable === false}
        onClick={() => cancel.mutate()}
      >
        <Ban size={14} aria-hidden />
        Cancel
      </Button>
    </>
  );
}
