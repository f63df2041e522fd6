export { priceUsage, toCents, toDollars, toMicros, type Price, type Tokens } from "./price.ts";
