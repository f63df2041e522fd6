import { z } from "zod";
import { isMember } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { pathUid, route, timestamp, type Route, type RouteInput } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { isoTime } from "../formats/json-values.ts";

const CodeHost = z
  .object({
    uid: z.string(),
    name: z.string(),
    kind: z.enum(["github", "gitlab", "local"]),
    base_url: z.string(),
    root: z.string(),
    secret_name: z.string(),
    owners: z.array(z.string()),
    created_at: timestamp(),
  })
  .meta({ id: "CodeHost" });

const NewCodeHost = z.object({
  name: z.string().min(1).max(100),
  kind: z.enum(["github", "gitlab", "local"]),
  base_url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({ description: "github, gitlab: base URL of the REST API." }),
  root: z
    .string()
    .optional()
    .meta({ description: "local: directory of bare repositories `<root>/<owner>/<repo>.git`." }),
  secret_name: z.string().optional().meta({ description: "Managed secret with the token." }),
  owners: z
    .array(z.string().min(1))
    .max(100)
    .optional()
    .meta({ description: "Repository owners served; empty = every owner not served by another connection." }),
});

const teamParams = z.object({ uid: pathUid("team") });

export type CodeHostInput = RouteInput &
  Parameters<typeof onBehalf>[0] & { readonly params: { readonly uid: string; readonly codeHostUid: string } };

/**
 * Returns the code-host connection that the path identifies. Throws `code_host_not_found` if it does not exist or
 * belongs to another team.
 */
export async function findCodeHost(
  { catalog }: Pick<Upstreams, "catalog">,
  input: CodeHostInput,
): Promise<orchestrator.CodeHost> {
  const { codeHosts } = await catalog.listCodeHosts({ teamUid: input.params.uid }, onBehalf(input));
  const found = codeHosts.find((codeHost) => codeHost.uid === input.params.codeHostUid);
  if (!found) throw notFound("code_host");
  return found;
}

/**
 * Returns the routes of connections to code hosts, from which runs clone repositories and at which they open pull
 * requests. Millwright extension.
 */
export function codeHostRoutes(upstreams: Pick<Upstreams, "catalog" | "codeHostWebhooks">): Route[] {
  const { catalog, codeHostWebhooks } = upstreams;
  return [
    route({
      method: "GET",
      path: "/team/{uid}/code-hosts",
      extension: true,
      summary: "List code-host connections",
      verbs: ["factory.view"],
      params: teamParams,
      errors: [403],
      response: z.object({ code_hosts: z.array(CodeHost) }),
      handler: async (input) => {
        if (!isMember(input.caller, input.params.uid)) throw notFound("team");
        const { codeHosts } = await catalog.listCodeHosts({ teamUid: input.params.uid }, onBehalf(input));
        return { code_hosts: codeHosts.map(codeHostRecord) };
      },
    }),
    route({
      method: "POST",
      path: "/team/{uid}/code-hosts",
      extension: true,
      summary: "Connect a code host",
      verbs: ["factory.manage"],
      params: teamParams,
      errors: [403, 409],
      idempotent: true,
      status: 201,
      body: NewCodeHost,
      response: CodeHost,
      handler: async (input) => {
        const { body, params } = input;
        const { codeHost } = await catalog.createCodeHost(
          {
            codeHost: {
              teamUid: params.uid,
              name: body.name,
              kind: body.kind,
              baseUrl: body.base_url ?? "",
              root: body.root ?? "",
              secretName: body.secret_name ?? "",
              owners: body.owners ?? [],
            },
            idempotencyKey: input.request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return codeHostRecord(codeHost!);
      },
    }),
    route({
      method: "DELETE",
      path: "/team/{uid}/code-hosts/{codeHostUid}",
      extension: true,
      summary: "Remove a code-host connection",
      verbs: ["factory.manage"],
      params: z.object({ uid: pathUid("team"), codeHostUid: pathUid("code_host") }),
      errors: [403],
      status: 204,
      handler: async (input) => {
        const { uid, teamUid, kind } = await findCodeHost(upstreams, input);
        // The ingress rejects the code host's webhooks before the connection is deleted.
        if (kind !== "local") await codeHostWebhooks.removeCodeHost({ teamUid, codeHostUid: uid }, onBehalf(input));
        await catalog.deleteCodeHost({ uid }, onBehalf(input));
      },
    }),
  ];
}

const codeHostRecord = (host: orchestrator.CodeHost): z.input<typeof CodeHost> => ({
  uid: host.uid,
  name: host.name,
  kind: host.kind as "github" | "gitlab" | "local",
  base_url: host.baseUrl,
  root: host.root,
  secret_name: host.secretName,
  owners: host.owners,
  created_at: isoTime(host.createdAt!),
});
