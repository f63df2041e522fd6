export * from "./uids.ts";
export { newUid, NIL_UUID, uidOf, runnerUidOf, isUuid, newEnvironmentUid, randomHex, randomToken } from "./make.ts";
