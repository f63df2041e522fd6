import {
  OpenApiGeneratorV31,
  OpenAPIRegistry,
  type ResponseConfig,
  type RouteConfig,
} from "@asteasolutions/zod-to-openapi";
import { z } from "zod";
import { EXTENSION } from "./extension.ts";
import { groupOf, groupsOf } from "./groups.ts";
import { ingressOperations } from "./ingress-operations.ts";
import { Problem } from "./records.ts";
import { fullPath, type Route } from "./route.ts";

export type OpenApiDocument = ReturnType<OpenApiGeneratorV31["generateDocument"]>;

/** Returns the OpenAPI 3.1 document of all routes below `/api/v1`. */
export function openApiDocument(routes: readonly Route[], publicUrl: string): OpenApiDocument {
  const registry = new OpenAPIRegistry();
  registry.registerComponent("securitySchemes", "apiKey", {
    type: "http",
    scheme: "bearer",
    description: "An API key, or the token of a run.",
  });
  const documented = routes.filter(({ root }) => !root);
  for (const route of documented) registry.registerPath(pathOf(route));
  for (const operation of ingressOperations) registry.registerPath(operation);
  return new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: "3.1.0",
    info: {
      title: "Millwright",
      version: "1.0.0",
      description:
        "Self-hosted agent factories, which turn work items into pull requests. Errors are problem+json. `x-extension` marks operations and members beyond the published API. Unknown query parameters and body members are ignored unless an operation documents otherwise. An invalid or empty value of a known parameter is a 400.",
    },
    servers: [{ url: publicUrl }],
    tags: groupsOf(documented.map(({ path }) => path)),
  });
}

function pathOf(route: Route): RouteConfig {
  const headers = headersOf(route);
  return {
    method: route.method.toLowerCase() as Lowercase<Route["method"]>,
    path: fullPath(route),
    operationId: operationId(route),
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    tags: [groupOf(route.path)],
    ...(route.auth === "none"
      ? { security: [] }
      : { security: route.auth === "optional" ? [{ apiKey: [] }, {}] : [{ apiKey: [] }] }),
    ...(route.verbs ? { "x-required-permissions": [...route.verbs] } : {}),
    ...(route.extension ? EXTENSION : {}),
    request: {
      ...(route.params ? { params: route.params } : {}),
      ...(route.query ? { query: route.query } : {}),
      ...(headers ? { headers } : {}),
      ...(route.body
        ? {
            body: {
              required: !route.body.safeParse(undefined).success,
              content: { "application/json": { schema: route.body } },
            },
          }
        : {}),
    },
    responses: { ...successes(route), ...problems(route) },
  };
}

function headersOf(route: Route): z.ZodObject | undefined {
  const shape = {
    ...(route.idempotent
      ? {
          "Idempotency-Key": z.string().max(255).optional().meta({
            description:
              "A repeated request within 24 hours returns the first response. The same key with a different body is a 409.",
          }),
        }
      : {}),
    ...(route.teamHeader
      ? { "X-Service-Team-Uid": z.string().optional().meta({ description: "The active team. Ignored for agents." }) }
      : {}),
    ...(route.conditional
      ? {
          "If-None-Match": z.string().optional().meta({
            description: "Entity tags that the client has cached. Returns 304 if the current one is among them.",
          }),
        }
      : {}),
  };
  return Object.keys(shape).length > 0 ? z.object(shape) : undefined;
}

function successes(route: Route): Record<string, ResponseConfig> {
  const status = route.status ?? 200;
  const responses: Record<string, ResponseConfig> = {};
  if (route.response) {
    const others = (route.mediaTypes ?? []).map((type) => [type, { schema: z.string() }]);
    responses[status] = {
      description: "Success",
      content: { "application/json": { schema: route.response }, ...Object.fromEntries(others) },
    };
  }
  if (!route.response && !route.responses) responses[status] = { description: "Success, no body" };
  if (route.conditional)
    responses[304] = { description: "Not modified: `If-None-Match` contains the current entity tag." };
  for (const [code, extra] of Object.entries(route.responses ?? {})) {
    const types = [extra.contentType ?? "application/json"].flat();
    const schema = extra.schema ?? z.string();
    responses[code] = {
      description: extra.description,
      ...(extra.schema || extra.contentType
        ? { content: Object.fromEntries(types.map((type) => [type, { schema }])) }
        : {}),
    };
  }
  return responses;
}

const PROBLEM_TEXTS: Readonly<Record<number, string>> = {
  400: "The request is malformed or invalid",
  401: "No valid credential",
  403: "The caller lacks a required permission in its team",
  404: "Not found, or not visible to the caller",
  409: "The current state does not permit this operation",
  413: "The body is too large",
  422: "The resource does not support this operation",
  429: "Too many requests, or no capacity",
  500: "Internal server error",
};

function problems(route: Route): Record<string, ResponseConfig> {
  const statuses = new Set([...(route.errors ?? []), 500]);
  if (route.query || route.body || route.params) statuses.add(400);
  if (route.body) statuses.add(413);
  if (route.auth !== "none") statuses.add(401);
  if (route.params) statuses.add(404);
  if (route.idempotent) statuses.add(409);
  return Object.fromEntries(
    [...statuses].map((status) => [
      String(status),
      { description: PROBLEM_TEXTS[status] ?? "Problem", content: { "application/problem+json": { schema: Problem } } },
    ]),
  );
}

/**
 * `POST /agent/runs/{runId}/cancel` → `postAgentRunsRunIdCancel`. Stable, and unique because each method and path is.
 */
const operationId = (route: Route): string =>
  route.method.toLowerCase() +
  route.path
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
