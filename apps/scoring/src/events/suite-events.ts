import type { NewEvent } from "@millwright/events";
import type { Suite } from "../domain/suite.ts";
import type { Origin } from "./origin.ts";

/** Return events of suites, also for changes of their tasks. Payload: docs/events.md. */
export const suiteCreated = (suite: Suite, origin: Origin): NewEvent => ofSuite("created", suite, origin);
export const suiteUpdated = (suite: Suite, origin: Origin): NewEvent => ofSuite("updated", suite, origin);
export const suiteDeleted = (suite: Suite, origin: Origin): NewEvent => ofSuite("deleted", suite, origin);

const ofSuite = (past: string, suite: Suite, origin: Origin): NewEvent => ({
  type: `millwright.benchmark_suite.${past}.v1`,
  entity: "benchmark_suite",
  entityUid: suite.uid,
  entityVersion: suite.version,
  teamUid: suite.teamUid,
  ...origin,
  payload: { suite_uid: suite.uid, factory_uid: suite.factoryUid, name: suite.name, version: suite.version },
});
