import { useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { SendHorizontal } from "lucide-react";
import { api, dataOf, idempotencyKey } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type RunItem = components["schemas"]["RunItem"];

const OUTCOMES = {
  live_session: "Delivered to the agent.",
  queued_prompt: "The agent receives it when it starts.",
  handoff_execution: "The run continues with it.",
  queue_pending: "Queued; the agent receives it after its current work.",
} as const;

/** Sends a follow-up. Ctrl-Enter sends, too. */
export function FollowupBox({ run }: { run: RunItem }): ReactNode {
  const [message, setMessage] = useState("");
  const mayManage = useMay("run.manage");
  const toasts = useToasts();
  const queries = useQueryClient();
  const send = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/agent/runs/{runId}/followups", {
          params: { path: { runId: run.run_id }, header: idempotencyKey() },
          body: { message },
        }),
      ),
    onSuccess: ({ outcome }) => {
      setMessage("");
      toasts.success(OUTCOMES[outcome]);
      void queries.invalidateQueries({ queryKey: ["run", run.run_id] });
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  const isReady = mayManage && message.trim() !== "" && !send.isPending;
  const submit = (event: FormEvent | KeyboardEvent): void => {
    event.preventDefault();
    if (isReady) send.mutate();
  };
  return (
    <form className="followup" onSubmit={submit}>
      <textarea
        className="textarea"
        aria-label="Follow-up"
        placeholder={mayManage ? "Send a follow-up to the agent…" : "Your role may not send follow-ups."}
        value={message}
        disabled={!mayManage}
        onChange={(event) => setMessage(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}
      />
      <Button look="primary" type="submit" disabled={!isReady}>
        <SendHorizontal size={14} aria-hidden />
        Send
      </Button>
    </form>
  );
}
