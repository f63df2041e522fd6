import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import type { Attributes } from "@millwright/code-host-events";
import { orchestrator } from "@millwright/contracts";
import { DomainError, isDomainError } from "@millwright/errors";
import { as, newUid, type TeamUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import { chainOf } from "../domain/automation.ts";
import type { BoundTask } from "../domain/bound-task.ts";
import type { Factory } from "../domain/factory.ts";
import type { AutomationRun } from "../domain/decision.ts";
import type { NewRun } from "../domain/dispatch.ts";
import type { RunVersion, ConversationState } from "../domain/task.ts";

/** Returns a client for runs and conversations. */
export function orchestratorClient(transport: Transport, signer: CallerSigner) {
  const runs = clientFor(orchestrator.RunService, transport, { signer });
  const conversations = clientFor(orchestrator.ConversationService, transport, { signer });
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  const createOne = async (
    caller: Caller,
    request: MessageInitShape<typeof orchestrator.RunRequestSchema>,
  ): Promise<{ runUid: string }> => {
    const {
      runs: [created],
    } = await runs.createRuns({ runs: [request] }, call(caller));
    if (!created?.run)
      throw new DomainError({
        kind: "internal",
        reason: "run_missing_in_response",
        message: "The orchestrator returned no run. Retry.",
      });
    return { runUid: created.run.uid };
  };
  return {
    async factoryOfRun(caller: Caller): Promise<string | undefined> {
      if (!caller.run) return undefined;
      const found = await orAbsent(runs.getRun({ runUid: caller.run.runUid }, call(caller)));
      return found?.run?.factoryUid || undefined;
    },

    /** Called as this service, for a run that the team may see. */
    async chainOf(teamUid: string, rootRunUid: string): Promise<readonly string[]> {
      const self = serviceCaller(signer.service, newUid(), undefined, [
        { teamUid: as<TeamUid>(teamUid), verbs: ["run.view"] },
      ]);
      const found = await orAbsent(runs.getRun({ runUid: rootRunUid }, call(self)));
      return chainOf(found?.run?.metadata ?? {});
    },

    /** Called as this service. */
    async describePullRequests(
      teamUid: string,
      codeHostUid: string,
      repository: string,
      numbers: readonly number[],
    ): Promise<Attributes> {
      const { labels, authors, baseBranches, paths } = await catalog.describePullRequests(
        { teamUid, codeHostUid, repository, numbers: [...numbers] },
        call(serviceCaller(signer.service, newUid())),
      );
      return { labels, authors, base_branches: baseBranches, paths };
    },

    async conversationOf(caller: Caller, runUid: string): Promise<string | undefined> {
      return (await orAbsent(conversations.describeConversation({ runUid }, call(caller))))?.conversationUid;
    },

    async conversationStateOf(
      caller: Caller,
      teamUid: string,
      conversationUid: string,
    ): Promise<ConversationState | undefined> {
      const {
        conversations: [found],
      } = await conversations.describeConversations({ conversationUids: [conversationUid], teamUid }, call(caller));
      if (!found) return undefined;
      const { hidden, runUid, version, ownerType, ownerUid, creatorUid, metadata } = found;
      return hidden
        ? { isHidden: true }
        : {
            isHidden: false,
            runUid,
            version,
            creatorUid,
            metadata,
            teamUid: ownerType === "team" ? ownerUid : undefined,
          };
    },

    /** Called as this service; returns the team's current run of a conversation. */
    async currentRunOf(teamUid: string, conversationUid: string): Promise<RunVersion | undefined> {
      const self = serviceCaller(signer.service, newUid(), undefined, [
        { teamUid: as<TeamUid>(teamUid), verbs: ["run.view"] },
      ]);
      const request = { conversationUids: [conversationUid], teamUid };
      const {
        conversations: [found],
      } = await conversations.describeConversations(request, call(self));
      return found && !found.hidden ? { runUid: found.runUid, version: found.version } : undefined;
    },

    async cancelTree(caller: Caller, runUid: string, cause: string, idempotencyKey: string): Promise<void> {
      await runs.cancelRun({ runUid, tree: true, cause, idempotencyKey }, call(caller));
    },

    async close(caller: Caller, factory: Factory, withLiveRuns: boolean): Promise<number> {
      return (await runs.closeFactory({ factoryUid: factory.uid, withLiveRuns }, call(caller))).live;
    },

    /** Called as this service; runs of any team. */
    async titlesOf(self: Caller, runUids: readonly string[]): Promise<Record<string, string>> {
      return (await runs.getRunTitles({ runUids: [...runUids] }, call(self))).titles;
    },

    async dispatch(
      caller: Caller,
      { factory, agentUid, prompt, title, metadata, idempotencyKey }: NewRun,
    ): Promise<{ runUid: string }> {
      const request = {
        prompt,
        agentUid,
        metadata,
        ownerType: "team",
        ownerUid: factory.teamUid,
        factoryUid: factory.uid,
        origin: "dispatch",
        title,
        idempotencyKey,
      };
      return createOne(caller, request);
    },

    startAutomated: (caller: Caller, run: AutomationRun): Promise<{ runUid: string }> =>
      createOne(caller, automatedRun(run)),

    async continueAutomated(
      caller: Caller,
      run: AutomationRun,
      conversationUid: string,
    ): Promise<{ runUid: string } | undefined> {
      const continued = await conversations
        .continueConversation({ run: { ...automatedRun(run), conversationUid } }, call(caller))
        .catch((error: unknown) => {
          if (isDomainError(error) && error.reason === "conversation_not_found") return undefined;
          throw error;
        });
      return continued && { runUid: continued.runUid };
    },

    /** Called as this service. Returns none for an invalid URL. */
    async conversationsByUrl(teamUid: string, url: string): Promise<readonly string[]> {
      const found = await conversations
        .findConversationsByUrl({ teamUid, url }, call(serviceCaller(signer.service, newUid())))
        .catch((error: unknown) => {
          if (isDomainError(error) && error.reason === "url_invalid") return undefined;
          throw error;
        });
      return found?.conversationUids ?? [];
    },

    /** Called as this service, for runs that the team may see; hidden conversations are left out. */
    async currentRunsOf(
      teamUid: string,
      conversationUids: readonly string[],
    ): Promise<Map<string, NonNullable<BoundTask["at"]>>> {
      const self = serviceCaller(signer.service, newUid(), undefined, [
        { teamUid: as<TeamUid>(teamUid), verbs: ["run.view"] },
      ]);
      const { conversations: found } = await conversations.describeConversations(
        { conversationUids: [...conversationUids], teamUid },
        call(self),
      );
      return new Map(
        found.flatMap(({ conversationUid, hidden, factoryUid, agentUid, agentName }) =>
          hidden ? [] : [[conversationUid, { factoryUid, agentUid, agentName }]],
        ),
      );
    },
  };
}

function automatedRun({
  factory,
  runInput,
  agentUid,
  causeKey,
  triggerUrl,
  payload,
}: AutomationRun): MessageInitShape<typeof orchestrator.RunRequestSchema> & object {
  const { agent, prompt, title, config, source, metadata } = runInput;
  return {
    prompt,
    title,
    source,
    metadata,
    causeKey,
    triggerUrl,
    ownerType: "team",
    ownerUid: factory.teamUid,
    factoryUid: factory.uid,
    origin: "automation",
    dispatcherConfig: config,
    agentUid,
    agentName: agentUid === undefined ? agent : undefined,
    attachments: payload && [
      { fileName: payload.fileName, mimeType: "application/json", data: new Uint8Array(payload.bytes) },
    ],
  };
}

/** Returns undefined for what is absent or not visible to the caller. */
const orAbsent = <T>(response: Promise<T>): Promise<T | undefined> =>
  response.catch((error: unknown) => {
    if (isDomainError(error) && error.kind === "not_found") return undefined;
    throw error;
  });
