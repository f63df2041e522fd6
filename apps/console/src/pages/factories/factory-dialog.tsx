import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { choicesOf, SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";

type DefinitionFile = components["schemas"]["DefinitionFile"];
type Start = "template" | "folder" | "nothing";

const STARTS: Readonly<Record<Start, string>> = {
  template: "A foreman and an implementer",
  folder: "The files of a folder",
  nothing: "Nothing: agents and automations are created by the API",
};

/** Returns a definition to begin with. */
const templateOf = (name: string): DefinitionFile[] => [
  {
    path: "factory.yaml",
    content: `schemaVersion: v1alpha1\nname: ${JSON.stringify(name)}\nrepositories: []\nagentDefaults:\n  model: auto\n`,
  },
  {
    path: "agents/foreman/agent.md",
    content:
      "---\ndescription: Receives the factory's work and dispatches it.\nagentType: FOREMAN\n---\n\n" +
      "You are the foreman. Hand each piece of work to the implementer, wait for the result, and move the task to REVIEW\n" +
      "when there is a pull request for a person to review.\n",
  },
  {
    path: "agents/implementer/agent.md",
    content:
      "---\ndescription: Changes code, test first, and opens a pull request.\nagentType: IMPLEMENT\n---\n\n" +
      "You are the implementer. Run the tests, make the smallest change that can be right, run them again, and open a pull\n" +
      "request that states what was wrong.\n",
  },
];

/** Creates a factory. With files it opens the plan, where they are checked before they apply. */
export function FactoryDialog({ onClose }: { onClose: () => void }): ReactNode {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [start, setStart] = useState<Start>("template");
  const [folder, setFolder] = useState<readonly DefinitionFile[]>([]);
  const body = { name: name.trim(), description: description.trim() || null };
  const header = useIdempotencyKey(body);
  const create = useMutation({
    mutationFn: async () => {
      const { uid } = await dataOf(api.POST("/api/v1/factory", { params: { header }, body }));
      const files = start === "template" ? templateOf(body.name) : [...folder];
      if (start !== "nothing")
        await api.PUT("/api/v1/factory/{uid}/source", { params: { path: { uid } }, body: { files } });
      return uid;
    },
    onSuccess: (factoryUid) => {
      void queries.invalidateQueries({ queryKey: ["factories"] });
      void navigate({
        to: start === "nothing" ? "/factories/$factoryUid" : "/factories/$factoryUid/plan",
        params: { factoryUid },
      });
    },
  });
  return (
    <FormDialog
      title="Create a factory"
      action="Create"
      isPending={create.isPending}
      isInvalid={start === "folder" && folder.length === 0}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextField label="Name" required value={name} onChange={setName} />
      <TextField label="Description (optional)" value={description} onChange={setDescription} />
      <SelectField label="Begin with" value={start} choices={choicesOf(STARTS)} onChange={setStart} />
      {start === "folder" && (
        <label className="field">
          <span>Folder with factory.yaml</span>
          <input
            type="file"
            multiple
            ref={(input) => input?.setAttribute("webkitdirectory", "")}
            onChange={(event) => void filesOf([...(event.target.files ?? [])]).then(setFolder)}
          />
          <span className="soft small">{folder.length} files</span>
        </label>
      )}
    </FormDialog>
  );
}

/** Returns chosen files with their paths below the folder. Files of version control are left out. */
const filesOf = (chosen: readonly File[]): Promise<DefinitionFile[]> =>
  Promise.all(
    chosen
      .map((file) => ({ file, path: file.webkitRelativePath.split("/").slice(1).join("/") || file.name }))
      .filter(({ path }) => !/(?:^|\/)\./.test(path))
      .map(async ({ file, path }) => ({ path, content: await file.text() })),
  );
