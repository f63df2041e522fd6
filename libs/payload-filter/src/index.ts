export { withExactNumbers, parseExactly, parseStored, storedNumber, type StoredNumber } from "./exact-numbers.ts";
export { evaluateFilter, type Verdict } from "./evaluate.ts";
export { parseFilter, type FilterFault, type ParsedFilter } from "./parse-filter.ts";
export { isJson, parsePayload, type Payload } from "./payload.ts";
export { FILTER_LIMITS, type PayloadFilter } from "./filter.ts";
