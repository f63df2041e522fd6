export * from "./uids.ts";
export { newUid, uidOf, runnerUidOf, isUuid, newEnvironmentUid, randomHex, randomToken } from "./make.ts";
