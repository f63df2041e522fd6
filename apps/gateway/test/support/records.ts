import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { factories, orchestrator } from "@millwright/contracts";
import { AGENT, RUN, TEAM, USER } from "./people.ts";

export const at = (iso: string) => timestampFromDate(new Date(iso));
export const CREATED = "2026-11-20T09:00:00.123Z";
export const UPDATED = "2026-11-20T09:01:00.000Z";
export const CONVERSATION = "0198c2d0-0000-7000-8000-00000000c001";
export const ARTIFACT = "0198c2d0-0000-7000-8000-00000000a001";
export const FACTORY = "0198c2d0-0000-7000-8000-00000000f001";
export const TASK = "0198c2d0-0000-7000-8000-000000007001";

type Run = MessageInitShape<typeof orchestrator.RunSchema>;
type Artifact = MessageInitShape<typeof orchestrator.ArtifactSchema>;
type Factory = MessageInitShape<typeof factories.FactorySchema>;
type Task = MessageInitShape<typeof factories.TaskSchema>;

/** A run as the orchestrator returns it, with required members only. */
export const aRun = (fields: Run = {}): Run => ({
  uid: RUN,
  rootRunUid: RUN,
  title: "Mend it",
  state: "QUEUED",
  prompt: "Mend the roof",
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  source: "API",
  executionLocation: "REMOTE",
  creatorUid: USER,
  ownerType: "team",
  ownerUid: TEAM,
  agentConfig: { model_id: "scripted" },
  conversationUid: CONVERSATION,
  isRunTypeCancellable: true,
  mode: "normal",
  ...fields,
});

export const anArtifact = (fields: Artifact = {}): Artifact => ({
  uid: ARTIFACT,
  artifactType: "FILE",
  createdAt: at(CREATED),
  data: { artifact_uid: ARTIFACT, filename: "out.txt", filepath: "out.txt", mime_type: "text/plain" },
  runUid: RUN,
  ...fields,
});

export const aFactory = (fields: Factory = {}): Factory => ({
  uid: FACTORY,
  name: "Roofs",
  teamUid: TEAM,
  codeForge: "NONE",
  codeForges: ["NONE"],
  credentialStrategy: "EXECUTOR",
  creatorUid: USER,
  agentDefaults: { default_runner_uid: "", mcp_servers: {}, secrets: [], worker_host: "" },
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  management: "live",
  ...fields,
});

export const aTask = (fields: Task = {}): Task => ({
  uid: TASK,
  factoryUid: FACTORY,
  conversationUid: CONVERSATION,
  runUid: RUN,
  title: "Mend it",
  stage: "TRIAGE",
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  teamUid: TEAM,
  ...fields,
});

export { AGENT, RUN, TEAM, USER };
