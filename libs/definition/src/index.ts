export type {
  AgentPart,
  AgentType,
  AutomationPart,
  BenchmarkPart,
  BenchmarkTaskPart,
  CloudProviders,
  CodeForge,
  CredentialStrategy,
  Definition,
  ExecutionBlock,
  FactoryPart,
  Harness,
  Integration,
  McpServers,
  RunnerPart,
  ScorerPart,
  SkillPart,
  TriggerPart,
} from "./definition.ts";
export { deferredResolutions } from "./deferred.ts";
export { byPosition, type Diagnostic, type DiagnosticCode, type Place } from "./diagnostics.ts";
export { isDefinitionPath } from "./layout.ts";
export { parseAutomation, type AutomationText, type ParsedAutomation } from "./parse-automation.ts";
export { locateInThread, parseDefinitionInThread } from "./parse-in-thread.ts";
export { parseDefinition, type ParsedDefinition } from "./parse-definition.ts";
export { readSkillFile } from "./skill-file.ts";
export {
  ALIAS,
  ALIAS_MAX,
  CODE_FORGES,
  CREDENTIAL_STRATEGIES,
  HEADER_NAME,
  hasAtMostCharacters,
  isAlias,
  isCredentialHeader,
  isFactoryName,
  REPOSITORY_NAME,
  REPOSITORY_OWNER,
  rolesFault,
  SIGNATURE_SCHEMES,
  titlesFault,
  WEBHOOK_AUTH_MODES,
  WEBHOOKS_MAX,
} from "./rules.ts";
export { isPlainPath, TREE_LIMITS, treeFault, type TreeFile } from "./tree.ts";
export { SCHEMA_DOCUMENTS, SCHEMA_VERSION } from "./schemas/index.ts";
export { PROVIDERS, TASK_STAGES, type Provider } from "./trigger-rules.ts";
export {
  isResourceKind,
  RESOURCE_KINDS,
  resourceChanges,
  type ResourceChange,
  type ResourceKind,
} from "./resource-changes.ts";
