import type { ConnectRouter } from "@connectrpc/connect";
import { isMember, requireServiceCaller, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { definitions, events, identity } from "@millwright/contracts";
import { invalidArgument, notFound } from "@millwright/errors";
import { serveEventFeed, type EventLog } from "@millwright/events";
import { isUuid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";
import type { Vault } from "@millwright/vault";
import { causedBy } from "../events/facts.ts";
import type { IdentityDb } from "../store/identity-db.ts";
import { activateDefinition } from "../usecases/activate-definition.ts";
import type { Authenticator } from "../usecases/authenticate.ts";
import { getProfiles } from "../usecases/get-profiles.ts";
import { resolveSecrets } from "../usecases/manage-secrets.ts";
import { findForeman, resolveAgent } from "../usecases/resolve-agent.ts";
import { discardDefinition, stageDefinition } from "../usecases/stage-definition.ts";
import { authenticatedMessage, profileMessage, resolvedMessage } from "./identity-messages.ts";

export type RpcDeps = { db: IdentityDb; clock: Clock; vault: Vault; authenticator: Authenticator; eventLog: EventLog };

/** Services that may call each method in their own name (libs/rpc). */
export const ALLOWED_SERVICES = {
  ...allowServices(identity.IdentityService, {
    authenticateKey: ["orchestrator", "standalone"],
    resolveAgent: ["orchestrator", "factories", "scoring"],
    findForeman: ["orchestrator", "factories"],
    getProfiles: ["orchestrator", "factories", "metrics"],
    resolveSecrets: ["orchestrator", "webhook-ingress", "factories"],
  }),
  ...allowServices(definitions.DefinitionOwnerService, {
    stageDefinition: ["factories"],
    discardDefinition: ["factories"],
    activateDefinition: ["factories"],
  }),
  ...allowServices(events.EventFeedService, { read: ["gateway", "factories", "orchestrator", "scheduler", "scoring"] }),
};

/** Returns the RPC routes of the gateway: identity, its part of definitions, and its event feed. */
export const rpcRoutes =
  (deps: RpcDeps) =>
  (router: ConnectRouter): void => {
    router.service(identity.IdentityService, {
      async authenticateKey({ key }, context) {
        requireServiceCaller(callerOf(context));
        return authenticatedMessage(await deps.authenticator.findKey(key));
      },
      async resolveAgent(request, context) {
        assertVisible(callerOf(context), request.teamUid, "agent");
        for (const uid of [request.agentUid, request.factoryUid])
          if (uid !== "" && !isUuid(uid)) throw notFound("agent");
        const { teamUid, agentUid, factoryUid, agentName, askedSecrets } = request;
        const query = {
          teamUid,
          agentUid: agentUid || undefined,
          factoryUid: factoryUid || undefined,
          agentName: agentName || undefined,
          askedSecrets,
        };
        return resolvedMessage(await resolveAgent(deps.db.lookups, query));
      },
      async findForeman({ teamUid, factoryUid }, context) {
        assertVisible(callerOf(context), teamUid, "factory");
        if (!isUuid(factoryUid)) throw notFound("factory");
        const { agent, definitionVersion } = await findForeman(deps.db.now, { teamUid, factoryUid });
        return { agentUid: agent.uid, agentName: agent.name, definitionVersion: BigInt(definitionVersion) };
      },
      async getProfiles({ uids, emails, teamUid }, context) {
        const profiles = await getProfiles(deps.db.now, { uids, emails, ...scopeOf(callerOf(context), teamUid) });
        return { profiles: profiles.map(profileMessage) };
      },
      async resolveSecrets({ teamUid, names, optionalNames }, context) {
        requireServiceCaller(callerOf(context));
        if (!isUuid(teamUid)) throw notFound("team");
        return resolveSecrets({ tx: deps.db.now, vault: deps.vault }, { teamUid, names, optionalNames });
      },
    });
    router.service(definitions.DefinitionOwnerService, {
      async stageDefinition({ factoryUid, teamUid, version, definition, dryRun }, context) {
        assertVisible(callerOf(context), teamUid, "factory");
        assertUid(factoryUid);
        const { diagnostics, plan } = await stageDefinition(deps, {
          factoryUid,
          teamUid,
          version: Number(version),
          definition: definition ?? {},
          dryRun,
        });
        return { diagnostics, plan };
      },
      async discardDefinition({ factoryUid, version }) {
        assertUid(factoryUid);
        await discardDefinition(deps, { factoryUid, version: Number(version) });
        return {};
      },
      async activateDefinition({ factoryUid, version }, context) {
        assertUid(factoryUid);
        const by = causedBy(callerOf(context));
        const active = await deps.db.transaction(({ sql }) =>
          activateDefinition({ sql, clock: deps.clock }, by, { factoryUid, version: Number(version) }),
        );
        return { activeVersion: BigInt(active) };
      },
    });
    router.service(events.EventFeedService, serveEventFeed(deps.eventLog));
  };

/** Throws `not_found` unless the caller is a service, which acts on stored decisions, or a member of the team. */
function assertVisible(caller: Caller, teamUid: string, resource: string): void {
  if (!isUuid(teamUid) || (caller.principal.type !== "service" && !isMember(caller, teamUid))) throw notFound(resource);
}

function assertUid(factoryUid: string): void {
  if (!isUuid(factoryUid)) throw invalidArgument("invalid_factory_uid", "factory_uid must be a UUID.");
}

function scopeOf(caller: Caller, teamUid: string): { teamUids?: string[] } {
  const requested = teamUid === "" ? undefined : [teamUid].filter(isUuid);
  if (caller.principal.type === "service") return requested ? { teamUids: requested } : {};
  const own: string[] = caller.teams.map((team) => team.teamUid);
  return { teamUids: requested ? own.filter((uid) => requested.includes(uid)) : own };
}
