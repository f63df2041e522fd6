/**
 * Writes the REST reference from the OpenAPI document of a running platform:
 *
 *   curl -s http://127.0.0.1:8080/api/v1/openapi.json | node tools/docs/rest-reference.mjs > docs/rest-reference.md
 */
import { pathToFileURL } from "node:url";
import { text } from "node:stream/consumers";

/** Returns one page of Markdown with every operation, its parameters, body and responses. */
export function restReference(document) {
  const groups = Map.groupBy(operationsOf(document), (operation) => operation.tag);
  const sections = [...groups]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([tag, operations]) => [`## ${tag}`, ...operations.map((one) => operationText(one, document))].join("\n\n"));
  return [
    "# REST reference",
    `Generated from \`/api/v1/openapi.json\` (version ${document.info.version}) by \`tools/docs/rest-reference.mjs\`. Errors are \`application/problem+json\`; \`reason\` is stable.`,
    ...sections,
    [
      "## Records",
      ...Object.entries(document.components.schemas)
        .toSorted(([a], [b]) => a.localeCompare(b))
        .map(([name, schema]) => recordText(name, schema, document)),
    ].join("\n\n"),
    "",
  ].join("\n\n");
}

function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
      tag: operation.tags?.[0] ?? "api",
    })),
  );
}

function operationText(operation, document) {
  const parameters = (operation.parameters ?? []).map(
    (one) => `- \`${one.name}\` (${one.in}${one.required ? ", required" : ""}): ${schemaText(one.schema, document)}`,
  );
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  return [
    `### ${operation.method} ${operation.path}${operation["x-extension"] ? " (extension)" : ""}`,
    [operation.summary, operation.description].filter(Boolean).join(". ").replace(/\.*$/, "."),
    ...(operation["x-required-permissions"]
      ? [`Requires ${operation["x-required-permissions"].map((verb) => `\`${verb}\``).join(", ")}.`]
      : []),
    ...(parameters.length > 0 ? [parameters.join("\n")] : []),
    ...(body ? [`Body: ${schemaText(body, document)}`] : []),
    `Responses: ${Object.entries(operation.responses)
      .map(([status, response]) => responseText(status, response, document))
      .join(" · ")}`,
  ].join("\n\n");
}

/** Returns the text of a named schema, one line per member. */
function recordText(name, schema, document) {
  const members = Object.entries(schema.properties ?? {}).map(
    ([member, inner]) =>
      `- \`${member}\`${markers(schema.required?.includes(member), inner)}: ${schemaText(inner, document, 1)}`,
  );
  return [
    `### ${name}`,
    ...(schema.description ? [schema.description] : []),
    members.length > 0 ? members.join("\n") : schemaText(schema, document),
  ].join("\n\n");
}

/** Returns what qualifies a member: optional, extension. */
function markers(isRequired, schema) {
  const words = [...(isRequired ? [] : ["optional"]), ...(schema["x-extension"] ? ["extension"] : [])];
  return words.length > 0 ? ` (${words.join(", ")})` : "";
}

function responseText(status, response, document) {
  const schema = response.content?.["application/json"]?.schema;
  return Number(status) < 300 && schema ? `${status} ${schemaText(schema, document)}` : status;
}

/** Returns a short text for a schema: its name, its members, or its type. */
function schemaText(schema, document, depth = 0) {
  if (!schema) return "any";
  if (schema.$ref) return `\`${schema.$ref.split("/").at(-1)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(" | ");
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return alternatives.map((one) => schemaText(one, document, depth)).join(" | ");
  if (schema.type === "array") return `list of ${schemaText(schema.items, document, depth)}`;
  if (schema.type === "object" && schema.properties && depth < 2) {
    const members = Object.entries(schema.properties).map(
      ([name, inner]) =>
        `${name}${schema.required?.includes(name) ? "" : "?"}: ${schemaText(inner, document, depth + 1)}`,
    );
    return `{ ${members.join(", ")} }`;
  }
  return [schema.type, schema.format].flat().filter(Boolean).join(" ") || "any";
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.stdout.write(restReference(JSON.parse(await text(process.stdin))));
