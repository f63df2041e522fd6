import type { Decimal } from "./filter.ts";

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** Exponents beyond this are not normalised; such a number equals only the same text. */
const EXPONENT_DIGITS_MAX = 15;

/**
 * Returns the canonical form of a JSON number: sign, digits without zeros at either end, power of ten. Throws a plain
 * Error for any other text.
 */
export function decimalOf(text: string): Decimal {
  const parts = NUMBER.exec(text);
  if (!parts) throw new Error("not a JSON number");
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts;
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return { decimal: "0" }; // -0 is 0, whatever its exponent
  const significant = digits.replace(/0+$/, "");
  if (exponent.replace(/^[+-]?0*/, "").length > EXPONENT_DIGITS_MAX)
    return { decimal: `${sign}${significant}e${exponent} of ${fraction.length}` };
  return {
    decimal: `${sign}${significant}e${Number(exponent) - fraction.length + (digits.length - significant.length)}`,
  };
}
