export { ApiClient, type ApiClientOptions, type RequestOptions } from "./api-client.ts";
export { ApiError, type Problem } from "./api-error.ts";
export { parseEventStream, type ServerEvent } from "./event-stream.ts";
