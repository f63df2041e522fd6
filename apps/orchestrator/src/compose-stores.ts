import { sharedRead, type Database } from "@millwright/database";
import { artifactStore } from "./artifacts/store/artifact-store.ts";
import { pullRequestStore } from "./artifacts/store/pull-request-store.ts";
import { usageStore } from "./budgets/store/usage-store.ts";
import { skillStore } from "./catalog/store/skill-store.ts";
import { preparedStore } from "./conversations/store/prepared-store.ts";
import { scoredRunStore } from "./evidence/store/scored-run-store.ts";
import { runFactsStore } from "./facts/store/run-facts-store.ts";
import { runSpendStore } from "./facts/store/run-spend-store.ts";
import { findOfferedLease, watchDispatches } from "./leases/store/dispatch-store.ts";
import { findJobs } from "./leases/store/job-store.ts";
import { findLiveLease, findRunOfLease, renewLeases } from "./leases/store/lease-store.ts";
import { readQueueFacts } from "./leases/store/queue-status-store.ts";
import { findExceededLimits } from "./leases/store/reaper-store.ts";
import { endSession, findSession, markKeyChecked, putSession, touchSession } from "./leases/store/session-store.ts";
import type { Timings } from "./runs/domain/timings.ts";
import { promptFiles } from "./runs/store/attachment-store.ts";
import { closeFactory } from "./runs/store/closed-factory-store.ts";
import { findByCauses } from "./runs/store/create-store.ts";
import { ackDirectives, pendingDirectiveReader } from "./runs/store/directive-store.ts";
import { followupsOf, textsOfMessages } from "./runs/store/followup-store.ts";
import { findFrozen, findTrialSettings } from "./runs/store/frozen-store.ts";
import { findLocalLease, textsOfFollowups, undeliveredFollowups } from "./runs/store/local-run-store.ts";
import { runsOfExecutions } from "./runs/store/locked-runs.ts";
import { runOfMessage } from "./runs/store/message-store.ts";
import { findNewestEvent, listRunEvents } from "./runs/store/run-events-store.ts";
import { findSimilarRuns, listRuns } from "./runs/store/run-list-store.ts";
import {
  conversationsByUrl,
  currentRunsOfConversations,
  findByReference,
  listChildren,
  listOfConversation,
  listOfConversations,
  listTreeUids,
} from "./runs/store/conversation-run-store.ts";
import {
  countLiveRuns,
  earlierRuns,
  findNewestOfConversation,
  findRun,
  findTitles,
  liveRunsOfAgent,
  visibleRunReader,
} from "./runs/store/run-store.ts";
import { connectedWorkers, environmentUse, isSettled } from "./runs/store/run-view-store.ts";
import { listSharedRuns } from "./runs/store/shared-run-store.ts";
import { snapshotStore } from "./runs/store/snapshot-store.ts";
import { teamEventReader } from "./runs/store/team-event-store.ts";
import { findLeftWorkspace, findStartingCommits } from "./runs/store/workspace-store.ts";
import { bindStore } from "./storage/store/bind-store.ts";
import { firstResult } from "./storage/store/idempotency-store.ts";

/**
 * Binds the stores of the life cycle of runs to their connections. Short reads by key share connections (`lookups`);
 * everything else uses the pool.
 */
export function bindRunStores(database: Database, timings: Timings) {
  const sql = { ...database.sql, timings };
  const prepared = bindStore(sql, preparedStore);
  return {
    ...visibleRunReader(database),
    ...bindStore(
      { ...database.lookups, timings },
      { findJobs, findLiveLease, findRunOfLease, findSession, runsOfExecutions },
    ),
    ...bindStore(sql, {
      ...{ ackDirectives, countLiveRuns, currentRunsOfConversations, earlierRuns, endSession, findByCauses },
      ...{
        findExceededLimits,
        findFrozen,
        findLeftWorkspace,
        findLocalLease,
        findNewestOfConversation,
        findOfferedLease,
        firstResult,
      },
      ...{ findRun, findTitles, findTrialSettings, listSharedRuns },
      ...{ liveRunsOfAgent, markKeyChecked, promptFiles, putSession, readQueueFacts, renewLeases, runOfMessage },
      ...{ textsOfFollowups, textsOfMessages, touchSession, undeliveredFollowups, watchDispatches },
    }),
    listPendingDirectives: pendingDirectiveReader(sql),
    // A run may have thousands of watchers, which all read when an event is appended.
    listRunEvents: sharedRead(bindStore(sql, { listRunEvents }).listRunEvents),
    ...bindStore(database, { closeFactory }),
    artifactsOfRuns: bindStore(sql, artifactStore).listOfRuns,
    usageOfRuns: bindStore(sql, usageStore).ofRuns,
    insertPrepared: prepared.insert,
    findPrepared: prepared.find,
    settlePrepared: prepared.settle,
  };
}

/** Binds the stores that only views and the catalog use. Searches have connections of their own. */
export function bindViewStores({ sql, searches }: Database) {
  const artifacts = bindStore(sql, artifactStore);
  const pullRequests = bindStore(sql, pullRequestStore);
  const runFacts = bindStore(sql, runFactsStore);
  const runSpend = bindStore(sql, runSpendStore);
  const scoredRuns = bindStore(sql, scoredRunStore);
  const skills = bindStore(sql, skillStore);
  return {
    ...bindStore(searches, { listRuns, findSimilarRuns }),
    ...bindStore(sql, {
      ...{
        connectedWorkers,
        conversationsByUrl,
        environmentUse,
        findByReference,
        findNewestEvent,
        findStartingCommits,
      },
      ...{ followupsOf, listChildren, listOfConversation, listOfConversations, listTreeUids },
    }),
    isSettled: sharedRead(bindStore(sql, { isSettled }).isSettled),
    listTeamEvents: teamEventReader(sql),
    lastWorkspace: bindStore(sql, snapshotStore).lastOf,
    findArtifact: artifacts.find,
    setPublic: artifacts.setPublic,
    findPullRequest: pullRequests.find,
    pullRequestsOfRuns: pullRequests.listOfRuns,
    pullRequestUrlsOfTree: pullRequests.urlsOfTree,
    readSkills: skills.read,
    putSkills: skills.put,
    workerSkills: skills.ofWorkers,
    lastRuns: skills.lastRuns,
    findScoredRun: scoredRuns.find,
    listScoredRuns: scoredRuns.list,
    ancestorAgents: scoredRuns.ancestorAgents,
    runSnapshots: runFacts.snapshots,
    walkRuns: runFacts.walk,
    modelCallsOfRuns: runSpend.modelCalls,
    computeIntervalsOfRuns: runSpend.computeIntervals,
    producedPullRequests: runSpend.pullRequests,
    personFollowUpsOfRuns: runSpend.personFollowUps,
  };
}
