export * from "./uids.ts";
export { newUid, isUuid, newEnvironmentUid, randomToken } from "./make.ts";
