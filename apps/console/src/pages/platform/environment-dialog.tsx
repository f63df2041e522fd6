import { useState, type ReactNode } from "react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import { useSession } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { useToasts } from "../../ui/toasts.tsx";

type Environment = components["schemas"]["Environment"];
type Config = components["schemas"]["EnvironmentConfig"];

/** The configuration as the texts of the form: lists are one entry per line. */
const formOf = (config: Config) => ({
  name: config.name ?? "",
  description: config.description ?? "",
  image: config.docker_image ?? "",
  repositories: (config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join("\n"),
  setup: (config.setup_commands ?? []).join("\n"),
  secrets: (config.secrets ?? []).map(({ name }) => name).join("\n"),
  hosts: (config.allowed_hosts ?? []).join("\n"),
});
type Form = ReturnType<typeof formOf>;

const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Returns the edited configuration. Members that the form does not show are unchanged. */
function configOf(form: Form, old: Config): Config {
  const { description: _, docker_image: _image, ...rest } = old;
  return {
    ...rest,
    name: form.name.trim(),
    ...(form.description.trim() === "" ? {} : { description: form.description.trim() }),
    ...(form.image.trim() === "" ? {} : { docker_image: form.image.trim() }),
    github_repos: linesOf(form.repositories).map((line) => {
      const [owner = "", ...repo] = line.split("/");
      return { owner, repo: repo.join("/") };
    }),
    setup_commands: linesOf(form.setup),
    secrets: linesOf(form.secrets).map((name) => ({ name })),
    allowed_hosts: linesOf(form.hosts),
  };
}

/** Creates an environment, or edits one. */
export function EnvironmentDialog({
  environment,
  onClose,
}: {
  environment?: Environment;
  onClose: () => void;
}): ReactNode {
  const queries = useQueryClient();
  const toasts = useToasts();
  const navigate = useNavigate();
  const { team } = useSession();
  const [form, setForm] = useState(() => formOf(environment?.config ?? {}));
  const [isLinkShared, setLinkShared] = useState(environment?.link_sharing ?? false);
  const body = { config: configOf(form, environment?.config ?? {}), link_sharing: isLinkShared };
  const header = useIdempotencyKey(body);
  const save = useMutation({
    mutationFn: () =>
      environment
        ? dataOf(api.PUT("/api/v1/agent/environments/{uid}", { params: { path: { uid: environment.uid } }, body }))
        : dataOf(
            api.POST("/api/v1/agent/environments", { params: { header }, body: { ...body, team: team !== undefined } }),
          ),
    onSuccess: ({ uid }) => {
      toasts.success(environment ? "The environment is saved. Existing runs keep their configuration." : "Created.");
      void queries.invalidateQueries({ queryKey: ["environments"] });
      void queries.invalidateQueries({ queryKey: ["environment", uid] });
      onClose();
      if (!environment) void navigate({ to: "/environments/$uid", params: { uid } });
    },
  });
  const set = (changes: Partial<Form>): void => setForm({ ...form, ...changes });
  const lines = (label: string, name: keyof Form, placeholder: string): ReactNode => (
    <label className="field">
      <span>{label}, one per line</span>
      <textarea
        className="textarea mono"
        rows={3}
        spellCheck={false}
        placeholder={placeholder}
        value={form[name]}
        onChange={(event) => set({ [name]: event.target.value })}
      />
    </label>
  );
  return (
    <FormDialog
      title={environment ? "Edit environment" : "Create environment"}
      action={environment ? "Save" : "Create"}
      isPending={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <label className="field">
        <span>Name</span>
        <input className="input" required value={form.name} onChange={(event) => set({ name: event.target.value })} />
      </label>
      <label className="field">
        <span>Description</span>
        <input
          className="input"
          value={form.description}
          onChange={(event) => set({ description: event.target.value })}
        />
      </label>
      <label className="field">
        <span>Image</span>
        <input
          className="input mono"
          placeholder="The default of the worker"
          value={form.image}
          onChange={(event) => set({ image: event.target.value })}
        />
      </label>
      {lines("Repositories", "repositories", "owner/repository")}
      {lines("Setup commands", "setup", "npm ci")}
      {lines("Secrets", "secrets", "NPM_TOKEN")}
      {lines("Allowed hosts", "hosts", "registry.npmjs.org")}
      <label className="check">
        <input type="checkbox" checked={isLinkShared} onChange={(event) => setLinkShared(event.target.checked)} />
        Anyone who knows the id may use the environment
      </label>
    </FormDialog>
  );
}
