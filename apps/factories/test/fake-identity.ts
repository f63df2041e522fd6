import type { ConnectRouter } from "@connectrpc/connect";
import { definitions, identity } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { FakeOwner } from "./fake-owner.ts";

/** The gateway's inner side: agents appear when a definition is activated. */
export class FakeIdentity {
  static readonly allow = {
    ...allowServices(identity.IdentityService, { findForeman: ["factories"], getProfiles: ["factories"], resolveSecrets: ["factories"] }),
    ...allowServices(definitions.DefinitionOwnerService, { stageDefinition: ["factories"], dropDefinition: ["factories"], activateDefinition: ["factories"] }),
  };
  readonly owner = new FakeOwner("agent");
  /** Factory → foreman, for factories that were never defined by files. */
  readonly foremen = new Map<string, { agentUid: string; agentName: string }>();

  /** E-mail → uid, of the users of every team. */
  readonly users = new Map<string, string>();

  /** Managed secrets, of every team. */
  readonly secrets = new Map<string, string>();

  routes(router: ConnectRouter): void {
    router.service(definitions.DefinitionOwnerService, this.owner.service());
    router.service(identity.IdentityService, {
      findForeman: async ({ factoryUid }) => ({ ...this.#foremanOf(factoryUid), definitionVersion: 0n }),
      resolveSecrets: async ({ optionalNames }) => ({ values: Object.fromEntries(optionalNames.flatMap((name) => (this.secrets.has(name) ? [[name, this.secrets.get(name)!]] : []))) }),
      getProfiles: async ({ emails }) => ({ profiles: emails.flatMap((email) => (this.users.has(email) ? [{ type: "user", uid: this.users.get(email)!, email }] : [])) }),
    });
  }

  #foremanOf(factoryUid: string): { agentUid: string; agentName: string } {
    const set = this.foremen.get(factoryUid);
    if (set) return set;
    const agents = (this.owner.activeDefinition(factoryUid)?.["agents"] ?? []) as { name: string; agent_type: string }[];
    const foreman = agents.find(({ agent_type: type }) => type === "FOREMAN");
    if (!foreman) throw new DomainError({ kind: "conflict", reason: "foreman_missing", message: "No foreman." });
    const made = { agentUid: newUid(), agentName: foreman.name };
    this.foremen.set(factoryUid, made);
    return made;
  }
}
