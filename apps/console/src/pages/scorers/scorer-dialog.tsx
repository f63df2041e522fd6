import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";

/** Creates a scorer whose model decides by a rubric, and opens it. */
export function ScorerDialog({ factoryUid, onClose }: { factoryUid: string; onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [rubric, setRubric] = useState("");
  const [labels, setLabels] = useState("good = 1\nbad = 0");
  const [threshold, setThreshold] = useState("1");
  const [model, setModel] = useState("");
  const [rate, setRate] = useState("100");
  const { data: models } = useQuery({
    queryKey: ["models"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/models", { signal })),
  });
  const parsed = labelsOf(labels);
  const body = {
    name: name.trim(),
    scope_mode: "all_agents" as const,
    allowed_classifications: typeof parsed === "string" ? [] : parsed,
    threshold: Number(threshold),
    scoring_prompt: rubric,
    model_id: model === "" ? (models?.default_model_id ?? "") : model,
    sampling_rate: Number(rate),
  };
  const header = useIdempotencyKey(body);
  const create = useMutation({
    mutationFn: () =>
      dataOf(api.POST("/api/v1/factory/{uid}/scorers", { params: { path: { uid: factoryUid }, header }, body })),
    onSuccess: ({ uid: scorerUid }) => {
      void queries.invalidateQueries({ queryKey: ["scorers", factoryUid] });
      void navigate({ to: "/scorers/$factoryUid/$scorerUid", params: { factoryUid, scorerUid } });
    },
  });
  return (
    <FormDialog
      title="Create a scorer"
      action="Create"
      isPending={create.isPending}
      isInvalid={typeof parsed === "string"}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextField label="Name" required value={name} onChange={setName} />
      <label className="field">
        <span>Rubric: what the model judges, and when it gives which label</span>
        <textarea className="textarea" required value={rubric} onChange={(event) => setRubric(event.target.value)} />
      </label>
      <label className="field">
        <span>Labels with their scores, one per line</span>
        <textarea
          className="textarea mono"
          required
          value={labels}
          onChange={(event) => setLabels(event.target.value)}
        />
      </label>
      {typeof parsed === "string" && (
        <p className="notice bad" role="alert">
          {parsed}
        </p>
      )}
      <TextField
        label="Passes from the score"
        type="number"
        step="any"
        required
        value={threshold}
        onChange={setThreshold}
      />
      <SelectField
        label="Model"
        value={model}
        choices={[
          { value: "", label: `Default${models ? ` (${models.default_model_id})` : ""}` },
          ...(models?.models ?? []).map(({ id }) => ({ value: id, label: id })),
        ]}
        onChange={setModel}
      />
      <TextField
        label="Percent of finished runs that are judged"
        type="number"
        min="0"
        max="100"
        step="any"
        required
        value={rate}
        onChange={setRate}
      />
    </FormDialog>
  );
}

/** Returns the labels of lines such as "good = 1", or what is wrong with one. */
function labelsOf(text: string): { value: string; score: number }[] | string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const labels = lines.map((line) => {
    const [, value = "", score = ""] = /^\s*(.+?)\s*=\s*(-?[\d.]+)\s*$/.exec(line) ?? [];
    return { value, score: Number(score) };
  });
  const wrong = labels.findIndex(({ value, score }) => value === "" || !Number.isFinite(score));
  return wrong < 0 ? labels : `“${lines[wrong]}” is not a label with its score, such as “good = 1”.`;
}
