export * from "./uids.ts";
export { newUid, uidOf, isUuid, newEnvironmentUid, randomHex, randomToken } from "./make.ts";
