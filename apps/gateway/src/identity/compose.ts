import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { orchestrator, webhooks } from "@millwright/contracts";
import type { Database } from "@millwright/database";
import { EventLog, type EventHandlers } from "@millwright/events";
import { clientFor, type KeySource, type ServerOptions } from "@millwright/rpc";
import type { ServiceOptions } from "@millwright/service";
import { Vault } from "@millwright/vault";
import { RunTokens } from "./clients/run-tokens.ts";
import { secretPusher } from "./clients/secret-pusher.ts";
import { onFactoryEvents } from "./events/on-factory-events.ts";
import { ALLOWED_SERVICES, rpcRoutes } from "./rpc/routes.ts";
import { credentialReader } from "./store/credential-store.ts";
import { identityOperations, type IdentityOperations } from "./operations.ts";
import { IdentityDb } from "./store/identity-db.ts";
import { Authenticator } from "./usecases/authenticate.ts";
import { bootstrap, type Bootstrap } from "./usecases/bootstrap.ts";

export type IdentityOptions = Pick<
  ServiceOptions,
  "eventRetentionDays" | "masterKey" | "secondaryMasterKey" | "signer" | "clock" | "log" | "wakeups"
> & {
  /** Database that the process shares with the rest of the gateway. */
  readonly database: Database;
  readonly upstreams: { readonly orchestrator: Transport; readonly webhookIngress: Transport };
  /** Public keys for run tokens, which the orchestrator signs. */
  readonly runTokenKeys: KeySource;
  /** The first owner's key, used on the first start only. If absent, a random key is generated. */
  readonly bootstrapApiKey?: string | undefined;
  /** The platform's worker key. If absent, it is derived from the master key. */
  readonly workerKey?: string | undefined;
};

export type Identity = {
  /** Resolves bearer credentials to callers. */
  readonly authenticator: Authenticator;
  /** What routes may do with identities. */
  readonly operations: IdentityOperations;
  /** Events that identity publishes. */
  readonly eventLog: EventLog;
  /** Handlers of the feed of factories. */
  readonly factoryEventHandlers: EventHandlers;
  readonly routes: (router: ConnectRouter) => void;
  readonly allow: NonNullable<ServerOptions["allow"]>;
  /** Creates the initial records of a new platform. On later starts, it only returns the worker key. */
  readonly bootstrap: () => Promise<Bootstrap>;
};

/** Returns the identity module: teams, members, keys, secrets, agents, and the authentication of callers. */
export function composeIdentity(o: IdentityOptions): Identity {
  const { clock, database, log, signer, upstreams, wakeups } = o;
  const db = new IdentityDb(database);
  const vault = Vault.fromMasterKeys(o);
  const authenticator = new Authenticator({
    findCredential: credentialReader(database, clock),
    sql: database.sql,
    clock,
    log,
    runTokens: new RunTokens({
      keys: o.runTokenKeys,
      leases: clientFor(orchestrator.LeaseService, upstreams.orchestrator, { signer }),
      clock,
    }),
  });
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups });
  return {
    authenticator,
    operations: identityOperations(db, {
      clock,
      vault,
      credentialOf: (caller) => authenticator.credentialOf(caller),
      pushSecret: secretPusher(clientFor(webhooks.WebhookService, upstreams.webhookIngress, { signer })),
    }),
    eventLog,
    factoryEventHandlers: onFactoryEvents({ clock }),
    routes: rpcRoutes({ db, clock, vault, authenticator, eventLog }),
    allow: ALLOWED_SERVICES,
    bootstrap: () => bootstrap({ db, clock, masterKeys: o }, { apiKey: o.bootstrapApiKey, workerKey: o.workerKey }),
  };
}
