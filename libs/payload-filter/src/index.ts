export { checkPayload, readPayload, type PayloadCheck, type ReadPayload } from "./check-payload.ts";
export { exactNumber, parseExactly, parseStored, withExactNumbers } from "./exact-numbers.ts";
export { evaluateFilter, type Verdict } from "./evaluate.ts";
export { parseFilter, parseStoredFilter, type FilterFault, type ParsedFilter } from "./parse-filter.ts";
export { isJson, parsePayload, type Payload } from "./payload.ts";
export { FILTER_LIMITS, type PayloadFilter } from "./filter.ts";
