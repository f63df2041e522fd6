import { useState, type ReactNode } from "react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { listRuns } from "../../api/queries.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { SelectField } from "../../ui/select-field.tsx";
import { STAGES, type Stage } from "../../ui/task-stages.ts";
import { TextField } from "../../ui/text-field.tsx";

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
    queryFn: ({ signal }) => listRuns({ limit: RUNS_MAX, sort_by: "created_at" }, signal),
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
      <SelectField
        label="Conversation of the run"
        required
        value={conversation}
        choices={[
          { value: "", label: "Choose a run…" },
          ...(data?.runs ?? []).flatMap(({ title: runTitle, conversation_id: id }) =>
            id === undefined ? [] : [{ value: id, label: runTitle }],
          ),
        ]}
        onChange={choose}
      />
      <TextField label="Title" required value={title} onChange={setTitle} />
      <SelectField
        label="Stage"
        value={stage}
        choices={STAGES.map(([value, label]) => ({ value, label }))}
        onChange={setStage}
      />
    </FormDialog>
  );
}
