import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { definitions, events, identity } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { FakeOwner } from "./fake-owner.ts";

/** The internal API of the gateway. Agents are created when a definition is activated. */
export class FakeIdentity {
  static readonly allow = {
    ...allowServices(identity.IdentityService, {
      findForeman: ["factories"],
      getProfiles: ["factories"],
      resolveSecrets: ["factories"],
    }),
    ...allowServices(events.EventFeedService, { read: ["factories"] }),
    ...allowServices(definitions.DefinitionOwnerService, {
      stageDefinition: ["factories"],
      discardDefinition: ["factories"],
      activateDefinition: ["factories"],
    }),
  };
  readonly owner = new FakeOwner("agent");
  /** Factory → foreman, for factories that were never defined by files. */
  readonly foremen = new Map<string, { agentUid: string; agentName: string }>();

  /** E-mail address → uid, for the users of all teams. */
  readonly users = new Map<string, string>();

  /** The managed secrets of all teams. */
  readonly secrets = new Map<string, string>();

  readonly feed: { type: string; entityUid: string; teamUid: string; occurredAt: Date; payload: JsonObject }[] = [];

  /** Appends a change of a member to the feed. */
  memberChanged(
    happened: "removed" | "updated",
    teamUid: string,
    userUid: string,
    occurredAt: Date,
    role = "member",
  ): void {
    this.feed.push({
      type: `millwright.member.${happened}.v1`,
      entityUid: `${teamUid}:${userUid}`,
      teamUid,
      occurredAt,
      payload: { role },
    });
  }

  routes(router: ConnectRouter): void {
    router.service(events.EventFeedService, {
      read: async ({ after, limit }) => ({
        logUid: "0199a000-0000-7000-8000-000000000004",
        head: BigInt(this.feed.length),
        events: this.feed.slice(Number(after), Number(after) + limit).map((event, index) => ({
          ...event,
          uid: newUid(),
          position: after + BigInt(index) + 1n,
          entity: "member",
          entityVersion: 2n,
          actorType: "user",
          actorUid: newUid(),
          requestId: "r-1",
          occurredAt: timestampFromDate(event.occurredAt),
        })),
      }),
    });
    router.service(definitions.DefinitionOwnerService, this.owner.service());
    router.service(identity.IdentityService, {
      findForeman: async ({ factoryUid }) => ({ ...this.#foremanOf(factoryUid), definitionVersion: 0n }),
      resolveSecrets: async ({ optionalNames }) => ({
        values: Object.fromEntries(
          optionalNames.flatMap((name) => (this.secrets.has(name) ? [[name, this.secrets.get(name)!]] : [])),
        ),
      }),
      getProfiles: async ({ emails }) => ({
        profiles: emails.flatMap((email) =>
          this.users.has(email) ? [{ type: "user", uid: this.users.get(email)!, email }] : [],
        ),
      }),
    });
  }

  #foremanOf(factoryUid: string): { agentUid: string; agentName: string } {
    const set = this.foremen.get(factoryUid);
    if (set) return set;
    const agents = (this.owner.activeDefinition(factoryUid)?.["agents"] ?? []) as {
      name: string;
      agent_type: string;
    }[];
    const foreman = agents.find(({ agent_type: type }) => type === "FOREMAN");
    if (!foreman) throw new DomainError({ kind: "conflict", reason: "foreman_missing", message: "No foreman." });
    const made = { agentUid: newUid(), agentName: foreman.name };
    this.foremen.set(factoryUid, made);
    return made;
  }
}
