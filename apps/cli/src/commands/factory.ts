import { parseDefinition } from "@millwright/definition";
import { table } from "@millwright/terminal";
import { EXIT, textOption, UsageError, type Cli, type Command } from "../command.ts";
import { readDefinitionDirectory } from "../definition-directory.ts";
import { FACTORY, factoryUid, type Factory } from "../which-factory.ts";

type Diagnostic = { path: string; line: number; column: number; code: string; message: string; severity?: string };
type PlanItem = { kind: string; name: string; action: string; changed_fields?: string[] };
type Check = { valid: boolean; diagnostics: Diagnostic[]; plan?: PlanItem[] };

const diagnosticLines = (diagnostics: Diagnostic[]): string =>
  diagnostics.map((d) => `${d.path}:${d.line}:${d.column} ${d.severity ?? "error"} ${d.code} ${d.message}`).join("\n");

const planLines = (plan: PlanItem[]): string =>
  table(
    ["ACTION", "KIND", "NAME", "FIELDS"],
    plan.map((item) => [item.action, item.kind, item.name, (item.changed_fields ?? []).join(", ")]),
  );

type Applied = { source: { active_version: number; state: string }; plan: PlanItem[] };
const showApplied = (cli: Cli, applied: Applied): void =>
  cli.show(
    applied,
    () =>
      `${planLines(applied.plan)}\nversion ${applied.source.active_version} is ${applied.source.state.toLowerCase()}.`,
  );

type Source = { kind: string; repository_url: string | null; branch: string | null };

/** Uploading files ends the tracking of branches, so it requires `--replace-source`. */
async function requireNoRepository(cli: Cli, uid: string): Promise<void> {
  const source = await cli.api().get<Source>(`/factory/${uid}/source`);
  if (source.kind !== "git") return;
  throw new UsageError(
    `The definition of this factory comes from ${source.repository_url} (branch ${source.branch}). ` +
      "Commit the change there, or add --replace-source to define the factory by these files instead.",
  );
}

/** Factories and their definitions. */
export const factoryCommands: Command[] = [
  {
    words: "factory create",
    args: ["NAME"],
    options: { alias: { type: "string" } },
    summary: "Create an empty factory.",
    run: async (cli, [name], values) => {
      const alias = textOption(values, "alias");
      const factory = await cli.api().post<Factory>("/factory", { name, alias });
      cli.show(factory, () => `factory ${factory.uid} (${factory.name})`);
    },
  },
  {
    words: "factory list",
    args: [],
    options: { search: { type: "string" } },
    summary: "List factories.",
    run: async (cli, _args, values) => {
      const { factories } = await cli
        .api()
        .get<{ factories: Factory[] }>("/factory", { search: textOption(values, "search"), limit: 100 });
      cli.show(factories, () =>
        table(
          ["FACTORY", "NAME", "ALIAS"],
          factories.map((factory) => [factory.uid, factory.name, factory.alias ?? ""]),
        ),
      );
    },
  },
  {
    words: "factory plan",
    args: ["DIR"],
    options: FACTORY,
    summary: "Show what applying a definition directory would change.",
    run: async (cli, [dir], values) => {
      const uid = await factoryUid(cli, values);
      const check = await cli
        .api()
        .post<Check>(`/factory/${uid}/source/plan`, { files: await readDefinitionDirectory(dir!) });
      cli.show(check, () =>
        [diagnosticLines(check.diagnostics), planLines(check.plan ?? [])].filter(Boolean).join("\n"),
      );
      return check.valid ? EXIT.done : EXIT.failed;
    },
  },
  {
    words: "factory apply",
    args: ["DIR"],
    options: { ...FACTORY, "replace-source": { type: "boolean" } },
    summary:
      "Upload a definition directory and apply it (--replace-source: also when the definition comes from a git repository).",
    run: async (cli, [dir], values) => {
      const uid = await factoryUid(cli, values);
      if (values["replace-source"] !== true) await requireNoRepository(cli, uid);
      await cli
        .api()
        .request("PUT", `/factory/${uid}/source`, { body: { files: await readDefinitionDirectory(dir!) } });
      showApplied(cli, await cli.api().post<Applied>(`/factory/${uid}/source/apply`));
    },
  },
  {
    words: "factory repair",
    args: [],
    options: FACTORY,
    summary: "Apply the source's definition again as a new version, so that services that have drifted serve it.",
    run: async (cli, _args, values) => {
      const uid = await factoryUid(cli, values);
      showApplied(cli, await cli.api().post<Applied>(`/factory/${uid}/source/apply`, { repair: true }));
    },
  },
  {
    words: "factory dispatch",
    args: ["PROMPT"],
    options: { ...FACTORY, title: { type: "string" }, ticket: { type: "string" } },
    summary: "Send work to a factory's foreman.",
    run: async (cli, [prompt], values) => {
      const uid = await factoryUid(cli, values);
      const run = await cli
        .api()
        .post<{ run_id: string; foreman_agent: string; run_url?: string }>(`/factory/${uid}/runs`, {
          prompt,
          title: textOption(values, "title") || undefined,
          ticket_ref: textOption(values, "ticket") || undefined,
        });
      cli.show(run, () => `run ${run.run_id} was dispatched to ${run.foreman_agent}\n${run.run_url ?? ""}`.trimEnd());
    },
  },
  {
    words: "validate",
    args: ["DIR"],
    summary: "Validate a definition directory offline.",
    ignoresTeam: true,
    run: async (cli, [dir]) => {
      const { diagnostics } = parseDefinition(await readDefinitionDirectory(dir!));
      const isValid = diagnostics.every((diagnostic) => diagnostic.severity === "warning");
      cli.show({ valid: isValid, diagnostics }, () =>
        diagnostics.length > 0 ? diagnosticLines(diagnostics) : "The definition is valid.",
      );
      return isValid ? EXIT.done : EXIT.failed;
    },
  },
];
