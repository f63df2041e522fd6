const BULK_QUANTITY = 10;
const BULK_DISCOUNT_PERCENT = 10;

/** The price of one order line in cents; ten or more of an item cost a tenth less. */
export function lineTotal({ unitCents, quantity }) {
  const full = unitCents * quantity;
  if (quantity > BULK_QUANTITY) return Math.round((full * (100 - BULK_DISCOUNT_PERCENT)) / 100);
  return full;
}

/** The price of an order in cents. */
export function orderTotal(lines) {
  return lines.reduce((sum, line) => sum + lineTotal(line), 0);
}
