export * from "./uids.ts";
export { newUid, isUuid, newEnvironmentUid, randomHex, randomToken } from "./make.ts";
