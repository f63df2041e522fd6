export { priceUsage, toCents, toDollars, type Price, type Tokens } from "./price.ts";
