export { codeHostEventsOf } from "./code-host-events.ts";
export {
  withAttributes,
  type Attributes,
  type CodeHostDelivery,
  type CodeHostEvent,
  type CodeHostProvider,
  type FilterKey,
  type Item,
} from "./event.ts";
export { at, listAt, textAt } from "./json.ts";
export { matches, type Check, type CodeHostTrigger, type TriggerVerdict } from "./matches.ts";
export { jsonBytes, payloadOf } from "./payload.ts";
export { branchPushOf, type BranchPush } from "./push.ts";
export { repositoryAddress } from "./repository-address.ts";
