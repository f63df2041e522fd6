import assert from "node:assert/strict";
import { test } from "node:test";
import { lineTotal, orderTotal } from "../src/total.js";

test("a few items cost their full price", () => {
  assert.equal(lineTotal({ unitCents: 250, quantity: 3 }), 750);
});

test("ten items already get the bulk discount", () => {
  assert.equal(lineTotal({ unitCents: 100, quantity: 10 }), 900);
});

test("an order is the sum of its lines", () => {
  assert.equal(orderTotal([{ unitCents: 100, quantity: 20 }, { unitCents: 5, quantity: 1 }]), 1805);
});
