import { readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { worker } from "@millwright/contracts";
import { parseAllDocuments } from "yaml";

/** The owner of the Jobs in tests. */
export const OWNER = { url: "https://millwright.example", workerId: "cluster one" };
export const OFFER = `mwo_7_2_${"x".repeat(43)}`;
export const STARTED_MS = 1_700_000_000_000;

/** Returns an execution to be dispatched. */
export const anOrder = (more: object = {}) =>
  create(worker.DispatchedExecutionSchema, {
    executionId: 7n,
    attempt: 2,
    runUid: "0199c2f0-1111-7abc-8def-0123456789ab",
    offerToken: OFFER,
    harness: "oz",
    ...more,
  });

/** The manifests that operators apply. */
const deployed: any[] = parseAllDocuments(
  readFileSync(new URL("../../../../deploy/kubernetes/worker.yaml", import.meta.url), "utf8"),
).map((document) => document.toJS());
export const everyDeployed = (): readonly any[] => deployed;
export const deployedOfKind = (kind: string): any => deployed.find((manifest) => manifest.kind === kind);
