export { EXTENSION } from "./extension.ts";
export { route, fullPath, type IdempotencyKey, type RequestInfo, type Route, type RouteInput } from "./route.ts";
export { html, json, redirect, Reply, stream } from "./reply.ts";
export { ERROR_CATALOG, containsCredential } from "@millwright/errors";
export {
  cursor,
  instant,
  nonzeroUuid,
  pageLimit,
  pathText,
  pathUid,
  queryBoolean,
  queryChoice,
  queryFlag,
  queryInt,
  queryList,
  queryMap,
  queryText,
  rejectedParameter,
  uidOrNil,
  uuid,
  uuidList,
} from "./fields.ts";
export { recordOf } from "./own-record.ts";
export { pageInfo, PageInfo, Problem, Scope, timestamp, UserProfile } from "./records.ts";
export { restApp, type RestApp } from "./rest-app.ts";
export type { RespondOnce, Authenticate, Mount, RequestListener, RequestSessions, RestOptions } from "./context.ts";
export { assertSameOrigin } from "./same-origin.ts";
