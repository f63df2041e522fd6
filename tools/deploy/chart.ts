/**
 * Writes the chart's `values.schema.json`, which refuses unknown values, and its README, from `values.yaml` and from the
 * configuration of the services and of the worker.
 *
 *   npm run chart [-- --check]
 *
 * With `--check`, nothing is written; exit code 1 if a file is out of date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isMap, isPair, isScalar, parseDocument, type Document, type Pair } from "yaml";
import { settingsOfServices, settingsOfWorkers, type Setting } from "./chart-settings.ts";

export const CHART = resolve(import.meta.dirname, "../../deploy/helm/millwright");

type Schema = { readonly [key: string]: unknown };

/** Schemas of values whose default does not imply one, by path. `*` is any name. */
const SCHEMAS: Readonly<Record<string, Schema>> = {
  "images.pullPolicy": { enum: ["Always", "IfNotPresent", "Never"] },
  "images.pullSecrets": { type: "array", items: { type: "string", minLength: 1 } },
  "*.networks": networks(),
  "networkPolicy.outsideNetworks": networks(),
  "networkPolicy.outsideExcept": networks(),
  "networkPolicy.collectorNetworks": networks(),
  "networkPolicy.publicFrom": peers(),
  "networkPolicy.monitoringFrom": peers(),
  publicUrl: { type: "string", pattern: "^(https?://[^/]+)?$" },
  webhookUrl: { type: "string", pattern: "^(https?://[^/]+)?$" },
  "blobs.url": { type: "string", pattern: "^(s3://.+)?$" },
  "blobs.volume.accessMode": { enum: ["ReadWriteOnce", "ReadWriteMany"] },
  "tls.mode": { enum: ["none", "secrets", "certManager"] },
  "tls.issuerRef.kind": { enum: ["Issuer", "ClusterIssuer"] },
  "monitoring.kind": { enum: ["none", "ServiceMonitor", "PodMonitor"] },
  "gatewayApi.parentRefs": { type: "array", items: { type: "object", required: ["name"] } },
  "workerDefaults.backend": { enum: ["direct", "kubernetes"] },
  "workerDefaults.podSecurity": { enum: ["restricted", "sandbox"] },
  "*.whenUnsatisfiable": { enum: ["ScheduleAnyway", "DoNotSchedule"] },
  "defaults.terminationGracePeriodSeconds": { type: "integer", minimum: 20 },
  "workerDefaults.terminationGracePeriodSeconds": { type: "integer", minimum: 30 },
};

/** Members of objects that are free: Kubernetes' own, and labels. */
const STRINGS: Schema = { type: "object", additionalProperties: { type: "string" } };
const FREE: Readonly<Record<string, Schema>> = {
  resources: resources(),
  annotations: STRINGS,
  podAnnotations: STRINGS,
  podLabels: STRINGS,
  nodeSelector: STRINGS,
  labels: STRINGS,
  affinity: { type: "object" },
  tolerations: { type: "array", items: { type: "object" } },
  volumes: { type: "array", items: { type: "object", required: ["name"] } },
  volumeMounts: { type: "array", items: { type: "object", required: ["name", "mountPath"] } },
};

function networks(): Schema {
  return { type: "array", items: { type: "string", pattern: "^[0-9a-fA-F:.]+/[0-9]{1,3}$" } };
}

function peers(): Schema {
  const peer = { type: "object", minProperties: 1, additionalProperties: false };
  const selector = { type: "object" };
  return {
    type: "array",
    items: { ...peer, properties: { namespaceSelector: selector, podSelector: selector, ipBlock: selector } },
  };
}

/** Requests and limits; a limit of the memory is never absent. */
function resources(): Schema {
  const amounts = { type: "object", additionalProperties: { type: ["string", "number"] } };
  return {
    type: "object",
    additionalProperties: false,
    required: ["requests", "limits"],
    properties: { requests: amounts, limits: { ...amounts, required: ["memory"] } },
  };
}

const settingsSchema = (settings: readonly Setting[]): Schema => ({
  type: "object",
  additionalProperties: false,
  properties: Object.fromEntries(
    settings.filter(({ isSecret }) => !isSecret).map(({ name }) => [name, { type: ["string", "number", "boolean"] }]),
  ),
});

const secretSettingsSchema = (settings: readonly Setting[]): Schema => ({
  type: "object",
  additionalProperties: false,
  properties: Object.fromEntries(
    settings
      .filter(({ isSecret }) => isSecret)
      .map(({ name }) => [
        name,
        {
          type: "object",
          additionalProperties: false,
          required: ["name", "key"],
          properties: { name: { type: "string", minLength: 1 }, key: { type: "string", minLength: 1 } },
        },
      ]),
  ),
});

/** Returns the schema of the chart's values. */
export function valuesSchema(): Schema {
  const values = (parseDocument(readFileSync(join(CHART, "values.yaml"), "utf8")) as Document).toJS() as Schema;
  const root = schemaOf(values, []) as { readonly properties: Readonly<Record<string, Schema>> };
  const services = settingsOfServices();
  const workers = settingsOfWorkers();
  const service = root.properties["defaults"] as { readonly properties: Schema };
  const worker = root.properties["workerDefaults"] as { readonly properties: Schema };
  const withSettings = (base: { readonly properties: Schema }, settings: readonly Setting[]): Schema => ({
    ...base,
    properties: {
      ...base.properties,
      settings: settingsSchema(settings),
      secretSettings: secretSettingsSchema(settings),
    },
  });
  const all = Object.values(services);
  const common = all[0]!.filter(({ name }) => all.every((settings) => settings.some((one) => one.name === name)));
  const shared = common.filter(({ name }) => workers.some((one) => one.name === name));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Values of the chart millwright",
    ...root,
    properties: {
      ...root.properties,
      // Helm passes the values of a parent chart.
      global: { type: "object" },
      settings: settingsSchema(shared),
      defaults: withSettings(service, common),
      services: {
        type: "object",
        additionalProperties: false,
        properties: Object.fromEntries(
          Object.entries(services).map(([name, settings]) => [name, withSettings(service, settings)]),
        ),
      },
      workerDefaults: withSettings(worker, workers),
      workers: {
        type: "object",
        propertyNames: { pattern: "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$" },
        additionalProperties: { anyOf: [{ type: "null" }, withSettings(worker, workers)] },
      },
    },
  };
}

function schemaOf(value: unknown, path: readonly string[]): Schema {
  const key = path.at(-1) ?? "";
  const known = SCHEMAS[path.join(".")] ?? SCHEMAS[`*.${key}`] ?? FREE[key];
  if (known) return known;
  if (Array.isArray(value)) throw new Error(`The chart's value ${path.join(".")} needs a schema.`);
  if (typeof value === "object" && value !== null)
    return {
      type: "object",
      additionalProperties: false,
      properties: Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, schemaOf(member, [...path, name])]),
      ),
    };
  if (typeof value === "number") return { type: "integer", minimum: 0 };
  return { type: typeof value };
}

/** Returns the chart's README. */
export function chartReadme(): string {
  const document = parseDocument(readFileSync(join(CHART, "values.yaml"), "utf8"));
  const rows = isMap(document.contents) ? document.contents.items.flatMap((pair) => rowsOf(pair as Pair, [])) : [];
  const settings = Object.entries({ ...settingsOfServices(), workers: settingsOfWorkers() }).map(
    ([name, variables]) =>
      `- **${name}**: ${variables.map((one) => `\`${one.name}\`${one.isSecret ? " (secret)" : ""}`).join(", ")}`,
  );
  return `# Helm chart of Millwright

<!-- Written by \`npm run chart\` from values.yaml and from the configuration of the services. -->

[Installation](../../../docs/operations/install.md). \`values/\` has complete examples: \`small.yaml\`, \`highly-available.yaml\`,
\`air-gapped.yaml\`. \`values.schema.json\` refuses unknown values.

## Values

| value | default | meaning |
| --- | --- | --- |
${rows.join("\n")}

## Variables

The members of \`settings\`, and of \`secretSettings\` where marked so. The chart sets all others itself.

${settings.join("\n")}
`;
}

function rowsOf(pair: Pair, path: readonly string[], inherited = ""): string[] {
  if (!isPair(pair) || !isScalar(pair.key)) return [];
  const name = [...path, String(pair.key.value)];
  const own = commentOf(pair);
  const meaning = own || inherited;
  if (isMap(pair.value) && pair.value.items.length > 0 && !pair.value.flow && !((name.at(-1) ?? "") in FREE)) {
    const [first, ...others] = pair.value.items;
    // The YAML parser gives the comment before a map's first member to the map.
    const lead = pair.value.commentBefore?.trim() ?? "";
    return [
      ...(own ? [`| \`${name.join(".")}\` | | ${own} |`] : []),
      ...rowsOf(first!, name, lead),
      ...others.flatMap((member) => rowsOf(member, name)),
    ];
  }
  const value = pair.value as { toJSON(): unknown } | null;
  return [`| \`${name.join(".")}\` | \`${JSON.stringify(value?.toJSON() ?? null)}\` | ${meaning} |`];
}

const commentOf = ({ key }: Pair): string =>
  ((key as { commentBefore?: string }).commentBefore ?? "")
    .split(/\n\s*\n/)
    .at(-1)!
    .replaceAll(/\s*\n\s*/g, " ")
    .trim();

if (process.argv[1] === import.meta.filename) {
  const files = {
    "values.schema.json": `${JSON.stringify(valuesSchema(), null, 2)}\n`,
    "README.md": chartReadme(),
  };
  for (const [name, content] of Object.entries(files)) {
    const path = join(CHART, name);
    if (!process.argv.includes("--check")) writeFileSync(path, content);
    else if (readFileSync(path, "utf8") !== content) {
      process.stderr.write(`${path} is out of date, run \`npm run chart\`.\n`);
      process.exitCode = 1;
    }
  }
}
