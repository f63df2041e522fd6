import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { STAGES, type Stage } from "./tasks.ts";

const RUNS_MAX = 50;

/** Binds a new task to the conversation of a run. */
export function CreateTaskDialog({ factoryUid, onClose }: { factoryUid: string; onClose: () => void }): ReactNode {
  const queries = useQueryClient();
  const [title, setTitle] = useState("");
  const [conversation, setConversation] = useState("");
  const [stage, setStage] = useState<Stage>("TRIAGE");
  const body = { title: title.trim(), conversation_id: conversation, stage };
  const header = useIdempotencyKey(body);
  const { data } = useQuery({
    queryKey: ["runs", "recent"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/runs", { params: { query: { limit: RUNS_MAX, sort_by: "created_at" } }, signal })),
  });
  const create = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/factory/{uid}/tasks", {
          params: { path: { uid: factoryUid }, header },
          body,
        }),
      ),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["tasks", factoryUid] });
      onClose();
    },
  });
  const choose = (conversationId: string): void => {
    setConversation(conversationId);
    const run = data?.runs.find(({ conversation_id: id }) => id === conversationId);
    if (title === "" && run) setTitle(run.title);
  };
  return (
    <FormDialog
      title="Create task"
      action="Create"
      isPending={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <p className="soft">
        A task tracks a conversation. “Dispatch work” creates the run, its conversation and the task at once.
      </p>
      <label className="field">
        <span>Conversation of the run</span>
        <select className="select" required value={conversation} onChange={(event) => choose(event.target.value)}>
          <option value="">Choose a run…</option>
          {data?.runs.map(
            ({ run_id: id, title: runTitle, conversation_id: conversationId }) =>
              conversationId !== undefined && (
                <option key={id} value={conversationId}>
                  {runTitle}
                </option>
              ),
          )}
        </select>
      </label>
      <TextField label="Title" required value={title} onChange={setTitle} />
      <label className="field">
        <span>Stage</span>
        <select className="select" value={stage} onChange={(event) => setStage(event.target.value as Stage)}>
          {STAGES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </FormDialog>
  );
}
