import type { ConnectRouter, Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { orchestrator, webhooks } from "@millwright/contracts";
import type { Database } from "@millwright/database";
import { EventLog, type EventHandlers } from "@millwright/events";
import { clientFor, type KeySource, type ServerOptions } from "@millwright/rpc";
import type { ServiceOptions } from "@millwright/service";
import { Vault } from "@millwright/vault";
import { OpenIdProvider, type ProviderChecks, type ProviderOptions } from "./clients/openid-provider.ts";
import { RunTokens } from "./clients/run-tokens.ts";
import { secretPusher } from "./clients/secret-pusher.ts";
import { onFactoryEvents } from "./events/on-factory-events.ts";
import { ALLOWED_SERVICES, rpcRoutes } from "./rpc/routes.ts";
import { credentialReader } from "./store/credential-store.ts";
import { identityOperations, type IdentityOperations } from "./operations.ts";
import { IdentityDb } from "./store/identity-db.ts";
import { Authenticator } from "./usecases/authenticate.ts";
import { bootstrap, type Bootstrap } from "./usecases/bootstrap.ts";
import { describeSignInLink, redeemSignInLink } from "./usecases/sign-in-links.ts";
import { accountToConnect, signInWithProvider, type ProviderSignInDeps } from "./usecases/sign-in-with-provider.ts";
import { SESSION_LIMITS, Sessions, type SessionLimits, type SessionToken } from "./usecases/sessions.ts";

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
  /** The OpenID Connect provider that people sign in with. Absent: they sign in with API keys only. */
  readonly provider?: ProviderSettings | undefined;
  /** When sessions of browsers end. Default: after 24 hours, or 12 hours without use. */
  readonly sessionLimits?: SessionLimits;
};

/** Sessions of browsers. */
export type SessionOperations = {
  /** Starts a session that acts with a key, and ends with it. Errors: key_invalid (unauthenticated). */
  startWithKey(key: string, requestId: string): Promise<SessionToken>;
  /** Returns a new token for the caller's session, or undefined without a session or if its token is recent. */
  rotate(caller: Caller): Promise<SessionToken | undefined>;
  /** Ends the session of a token. */
  end(token: string, requestId: string): Promise<void>;
  /** Ends all sessions of the caller. */
  endAll(caller: Caller): Promise<void>;
};

/** Links that sign a person in once. */
export type SignInLinks = {
  /** Returns the name of the person whom a link signs in, or undefined if it is used or expired. */
  describe(token: string): Promise<string | undefined>;
  /** Uses up a link and starts a session of its person. Returns undefined if the link is used or expired. */
  redeem(token: string, requestId: string): Promise<SessionToken | undefined>;
};

export type ProviderSettings = ProviderOptions & Pick<ProviderSignInDeps, "teamsClaim" | "roles">;

/** Sign-in with an OpenID Connect provider. */
export type ProviderSignIn = {
  /** Returns the page of the provider, and what the browser must present afterwards. Errors: those of discovery. */
  begin(options: { askAgain: boolean }): Promise<{ url: string; checks: ProviderChecks }>;
  /**
   * Starts a session of the person in a provider's response, given by its query, and connects the provider's account
   * to the account `connectTo` first. Errors: those of `signInWithProvider` · an Error of openid-client.
   */
  complete(
    query: string,
    checks: ProviderChecks,
    options: { requestId: string; connectTo?: string | undefined },
  ): Promise<SessionToken>;
  /** Returns the uid of the caller's account. Errors: not_authorized, unless the caller has all rights of a person. */
  accountToConnect(caller: Caller): string;
};

export type Identity = {
  /** Resolves bearer credentials to callers. */
  readonly authenticator: Authenticator;
  readonly sessions: SessionOperations;
  readonly signInLinks: SignInLinks;
  /** Absent without a provider. */
  readonly providerSignIn: ProviderSignIn | undefined;
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
  const sessions = new Sessions({ database, clock, log, limits: o.sessionLimits ?? SESSION_LIMITS });
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
    sessions,
  });
  const provider = o.provider && new OpenIdProvider(o.provider, clock);
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups });
  return {
    authenticator,
    sessions: {
      startWithKey: async (key, requestId) => sessions.startWithKey(await authenticator.findKey(key), requestId),
      rotate: async (caller) => sessions.rotate(authenticator.credentialOf(caller)),
      end: (token, requestId) => sessions.end(token, requestId),
      endAll: (caller) => sessions.endAll(caller, authenticator.credentialOf(caller)),
    },
    signInLinks: {
      describe: (token) => describeSignInLink({ sql: database.sql, clock }, token),
      async redeem(token, requestId) {
        const userUid = await redeemSignInLink({ sql: database.sql, clock }, token);
        return userUid === undefined ? undefined : sessions.startForUser(userUid, "link", requestId);
      },
    },
    providerSignIn: provider && {
      begin: (options) => provider.begin(options),
      async complete(query, checks, options) {
        const claims = await provider.redeem(query, checks);
        const { teamsClaim, roles } = o.provider!;
        const userUid = await signInWithProvider({ db, clock, log, teamsClaim, roles }, claims, options);
        return sessions.startForUser(userUid, "provider", options.requestId);
      },
      accountToConnect: (caller) => accountToConnect(caller, authenticator.credentialOf(caller)),
    },
    operations: identityOperations(db, {
      clock,
      hasProvider: provider !== undefined,
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
