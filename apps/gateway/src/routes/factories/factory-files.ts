import { createHash } from "node:crypto";
import { z } from "zod";
import { deferredResolutions, parseDefinitionInThread, SCHEMA_DOCUMENTS, SCHEMA_VERSION } from "@millwright/definition";
import { notFound } from "@millwright/errors";
import { pathText, Reply, route, type RequestInfo, type Route } from "../../rest/index.ts";
import { DefinitionFile, Diagnostic, SOURCE_BODY_BYTES_MAX } from "./factory-source.ts";

type Content = { readonly text: string; readonly etag: string };

const contentOf = (value: unknown): Content => {
  const text = JSON.stringify(value);
  return { text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
};

const schemaUrl = (version: string): string => `/api/v1/factory-files/schemas/${version}`;
const VERSIONS = contentOf({
  current_version: SCHEMA_VERSION,
  versions: [{ schema_version: SCHEMA_VERSION, schema_url: schemaUrl(SCHEMA_VERSION) }],
});
const BUNDLE = contentOf({ schema_version: SCHEMA_VERSION, documents: SCHEMA_DOCUMENTS });
const BY_NAME: ReadonlyMap<string, Content> = new Map(
  Object.entries(SCHEMA_DOCUMENTS).map(([name, schema]) => [name, contentOf(schema)]),
);

const VALIDATE_TIMEOUT_MS = 60_000;
const JSON_TYPE = "application/json; charset=utf-8";
const SCHEMA_TYPE = "application/schema+json; charset=utf-8";

/**
 * Returns the content, or 304 without a body if `If-None-Match` contains its entity tag. Uses weak comparison (RFC 9110
 * §13.1.2).
 */
function contentReply({ text, etag }: Content, { headers }: RequestInfo, type = JSON_TYPE): Reply {
  const common = { etag, "cache-control": "no-cache" };
  const known = headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return known.includes("*") || known.includes(etag)
    ? new Reply(304, null, common)
    : new Reply(200, text, { ...common, "content-type": type });
}

const version = pathText("schema_version", new RegExp(`^${SCHEMA_VERSION}$`));
const document = pathText("document", /^[a-z_]+\.schema\.json$/);
const documentOf = (name: string): Content => {
  const found = BY_NAME.get(name);
  if (!found) throw notFound("document");
  return found;
};

/** Checks that depend on the state of the team or factory, which validation of files does not read. */
const NOT_CHECKED = [
  "provider_alias_resolution",
  "model",
  "environment",
  "secret",
  "runner_reference",
  "mcp_server",
  "integration",
  "worker_host",
  "entitlement",
];
/** Codes of files that cannot be parsed as YAML or frontmatter. */
const UNREADABLE: ReadonlySet<string> = new Set(["FF_PARSE_ERROR", "FF_FORBIDDEN_YAML"]);

const Scope = z.enum(["checked", "not_run"]);
const Validation = z
  .object({
    schema_version: z.string(),
    valid: z.boolean(),
    diagnostics: z.array(Diagnostic),
    deferred_resolutions: z.array(z.object({ path: z.string(), field: z.string(), kind: z.string() })),
    state_dependent_checks_not_run: z.array(z.string()),
    validation_scope: z.object({ parser: Scope, state_independent: Scope, state_dependent: z.literal("not_checked") }),
  })
  .meta({ id: "DefinitionValidation" });

/**
 * The JSON Schemas of definition files, and validation of files. Editors can read the schemas below `/schemas/` without
 * a credential.
 */
export const factoryFilesRoutes: Route[] = [
  route({
    method: "POST",
    path: "/factory-files/validate",
    summary: "Validate definition files without a factory",
    extension: true,
    description: "Reads no factory, team or repository, and stores nothing. Send the whole tree.",
    bodyBytesMax: SOURCE_BODY_BYTES_MAX,
    timeoutMs: VALIDATE_TIMEOUT_MS,
    body: z.object({ files: z.array(DefinitionFile).max(2_000) }),
    response: Validation,
    handler: async ({ body }) => {
      const { definition, diagnostics } = await parseDefinitionInThread(body.files);
      const isRead = !diagnostics.some(({ code }) => UNREADABLE.has(code));
      return {
        schema_version: SCHEMA_VERSION,
        valid: definition !== undefined,
        diagnostics,
        deferred_resolutions: definition
          ? deferredResolutions(definition).map((resolution) => ({ ...resolution }))
          : [],
        state_dependent_checks_not_run: NOT_CHECKED,
        validation_scope: {
          parser: "checked" as const,
          state_independent: isRead ? ("checked" as const) : ("not_run" as const),
          state_dependent: "not_checked" as const,
        },
      };
    },
  }),
  route({
    method: "GET",
    path: "/factory-files/schemas",
    summary: "List the versions of the definition format",
    conditional: true,
    response: z
      .object({
        current_version: z.string(),
        versions: z.array(z.object({ schema_version: z.string(), schema_url: z.string() })),
      })
      .meta({ id: "SchemaVersions" }),
    handler: async ({ request }) => contentReply(VERSIONS, request),
  }),
  route({
    method: "GET",
    path: "/factory-files/schemas/{schema_version}",
    summary: "All JSON Schema documents of one version",
    params: z.object({ schema_version: version }),
    conditional: true,
    response: z
      .object({ schema_version: z.string(), documents: z.record(z.string(), z.looseObject({})) })
      .meta({ id: "SchemaBundle" }),
    handler: async ({ request }) => contentReply(BUNDLE, request),
  }),
  route({
    method: "GET",
    path: "/factory-files/schemas/{schema_version}/{document}",
    summary: "One JSON Schema document",
    description: `One of ${[...BY_NAME.keys()].join(", ")}. References are relative to this path.`,
    params: z.object({ schema_version: version, document }),
    conditional: true,
    response: z.looseObject({}).meta({ id: "SchemaDocument" }),
    handler: async ({ params, request }) => contentReply(documentOf(params.document), request),
  }),
  route({
    method: "GET",
    path: "/schemas/{schema_version}/{document}",
    root: true,
    auth: "none",
    summary: "One JSON Schema document, for editors",
    params: z.object({ schema_version: version, document }),
    handler: async ({ params, request }) => contentReply(documentOf(params.document), request, SCHEMA_TYPE),
  }),
];
