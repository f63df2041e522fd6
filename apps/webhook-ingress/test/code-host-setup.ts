import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { webhooks } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { OWNER, TEAM, type Received, type World } from "./setup.ts";

/** Payloads that GitHub publishes. */
export const examples = createRequire(import.meta.url)("@octokit/webhooks-examples") as readonly {
  readonly name: string;
  readonly examples: readonly object[];
}[];
export const example = (name: string): string =>
  JSON.stringify(examples.find((published) => published.name === name)!.examples[0]);

export type CodeHosts = ReturnType<typeof codeHostsOf>;

/** Helpers for the addresses of code-host connections, through the HTTP and RPC API of a world. */
export function codeHostsOf(w: World) {
  const client = w.clientOf(webhooks.CodeHostWebhookService);
  const logOf = async (uid: string, teamUid: string = TEAM) =>
    (await client.listCodeHostDeliveries({ teamUid, codeHostUid: uid, pageSize: 100 }, call(OWNER))).deliveries;
  const post = async (
    uid: string,
    headers: Record<string, string>,
    body: string | Uint8Array,
    to = w.url,
  ): Promise<Received> => {
    const response = await fetch(`${to}/webhooks/c/${uid}`, { method: "POST", headers, body: body as string });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  };
  return {
    client,
    post,
    /** Opens the address of a new connection. */
    async open(provider: "github" | "gitlab" = "github", more: { botLogin?: string } = {}) {
      const codeHostUid = newUid();
      const { secret } = await client.putCodeHostWebhook(
        { teamUid: TEAM, codeHostUid, provider, enabled: true, ...more },
        call(OWNER),
      );
      return { uid: codeHostUid, secret, ref: { teamUid: TEAM, codeHostUid } };
    },
    /** Sends as GitHub does, signed by its own library. */
    github: async (
      uid: string,
      secret: string,
      {
        id = newUid(),
        event = "push",
        body = example("push"),
        headers = {},
        to = w.url,
      }: { id?: string; event?: string; body?: string; headers?: Record<string, string>; to?: string } = {},
    ) =>
      post(
        uid,
        {
          "content-type": "application/json",
          "user-agent": "GitHub-Hookshot/044aadd",
          "x-github-event": event,
          "x-github-delivery": id,
          "x-hub-signature-256": await signForGitHub(secret, body),
          ...headers,
        },
        body,
        to,
      ),
    /** Sends as GitLab does with a secret token. */
    gitlab: (
      uid: string,
      secret: string,
      {
        headers = {},
        body = '{"object_kind":"push"}',
        to = w.url,
      }: { headers?: Record<string, string>; body?: string; to?: string } = {},
    ) =>
      post(
        uid,
        { "content-type": "application/json", "x-gitlab-event": "Push Hook", "x-gitlab-token": secret, ...headers },
        body,
        to,
      ),
    logOf,
    /** Returns the outcomes, newest first. */
    outcomesOf: async (uid: string) => (await logOf(uid)).map(({ outcome }) => outcome),
    /** Returns the events of a connection so far. */
    eventsOf: (uid: string) =>
      w.rows<{ type: string; entity_uid: string; payload: Record<string, unknown> }>(
        "SELECT type, entity_uid, payload FROM stream.event_pending WHERE payload->>'code_host_uid' = $1 ORDER BY seq",
        [uid],
      ),
  };
}

export const hmac = (secret: string, body: string | Uint8Array): string =>
  `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
