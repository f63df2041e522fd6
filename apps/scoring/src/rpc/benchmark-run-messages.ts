import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scoring } from "@millwright/contracts";
import type { JsonObject } from "@millwright/json";
import type { BenchmarkRunView } from "../usecases/benchmark-runs.ts";
import type { LaunchRequest } from "../usecases/launch-benchmark.ts";
import { readConfiguration } from "./suite-messages.ts";

export const readLaunch = (request: scoring.LaunchBenchmarkRequest): LaunchRequest => ({
  factoryUid: request.factoryUid,
  suiteUid: request.suiteUid,
  repetitionCount: request.repetitionCount,
  ...(request.hasConfigurations && { configurations: request.configurations.map(readConfiguration) }),
  scorerSelection: [...new Set(request.scorerSelection.map((text) => text.trim()))],
  ...(request.hasTasks && { taskUids: request.taskUids }),
  ...(request.historicalReplayRunUid !== undefined && { historicalReplayRunUid: request.historicalReplayRunUid }),
  parallelism: request.parallelism,
  idempotencyKey: request.idempotencyKey,
});

export const toBenchmarkRunMessage = ({ run, progress, results, hasLaunchSettings }: BenchmarkRunView) => ({
  uid: run.uid,
  factoryUid: run.factoryUid,
  suiteUid: run.suiteUid,
  suiteName: run.suiteName,
  suiteVersion: run.suiteVersion,
  state: run.state,
  createdAt: timestampFromDate(run.createdAt),
  updatedAt: timestampFromDate(run.updatedAt),
  ...(run.startedAt && { startedAt: timestampFromDate(run.startedAt) }),
  ...(run.completedAt && { completedAt: timestampFromDate(run.completedAt) }),
  agentUid: run.agentUid,
  agentName: run.agentName,
  repetitionCount: run.repetitionCount,
  creatorUid: run.creator.uid,
  manifestHash: run.manifestHash,
  ...(hasLaunchSettings && { manifest: run.manifest as unknown as JsonObject }),
  progress,
  ...(results && { results }),
  ...(run.replayedRunUid !== null && { historicalReplayRunUid: run.replayedRunUid }),
});
