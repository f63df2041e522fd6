import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scoring } from "@millwright/contracts";
import type { JsonObject } from "@millwright/json";
import { optionalTimestamp } from "@millwright/rpc";
import type { BenchmarkRunView } from "../usecases/benchmark-runs.ts";
import type { LaunchRequest } from "../usecases/launch-benchmark.ts";
import { readConfiguration } from "./suite-messages.ts";

export const readLaunch = (request: scoring.LaunchBenchmarkRequest): LaunchRequest => ({
  factoryUid: request.factoryUid,
  suiteUid: request.suiteUid,
  repetitionCount: request.repetitionCount,
  configurations: request.hasConfigurations ? request.configurations.map(readConfiguration) : undefined,
  scorerSelection: [...new Set(request.scorerSelection.map((text) => text.trim()))],
  taskUids: request.hasTasks ? request.taskUids : undefined,
  historicalReplayRunUid: request.historicalReplayRunUid,
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
  startedAt: optionalTimestamp(run.startedAt),
  completedAt: optionalTimestamp(run.completedAt),
  agentUid: run.agentUid,
  agentName: run.agentName,
  repetitionCount: run.repetitionCount,
  creatorUid: run.creator.uid,
  manifestHash: run.manifestHash,
  manifest: hasLaunchSettings ? (run.manifest as unknown as JsonObject) : undefined,
  progress,
  results,
  historicalReplayRunUid: run.replayedRunUid ?? undefined,
});
