export { createLogger, type Logger, type LoggerOptions } from "./logger.ts";
export { LOG_FIELDS, type LogField, type LogFields } from "./log-fields.ts";
export { Metrics } from "./metrics.ts";
export { newTraceId, type RequestContext } from "./context.ts";
