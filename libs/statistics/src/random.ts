/** A generator of uniform whole numbers below `bound` (at most 2²¹). */
export type RandomIndex = (bound: number) => number;

/**
 * Returns xoshiro128** seeded by splitmix32. Only 32-bit integer arithmetic: the same numbers on every platform.
 * Source: Blackman and Vigna 2021, Scrambled linear pseudorandom number generators.
 */
export function seededIndex(seed: number): RandomIndex {
  const next = xoshiro128([...splitmix32(seed, 4)]);
  return (bound) => Math.floor((next() * bound) / 2 ** 32);
}

/** Returns the generator of 32-bit numbers with this state of four words, not all 0. */
export function xoshiro128(state: readonly number[]): () => number {
  let [a = 0, b = 0, c = 0, d = 0] = state;
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotate(d, 11);
    return result;
  };
}

const rotate = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

/** Spreads a seed over several words. */
function* splitmix32(seed: number, words: number): Generator<number> {
  for (let i = 1; i <= words; i++) {
    let z = (seed + Math.imul(i, 0x9e3779b9)) | 0;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    yield z ^ (z >>> 15);
  }
}
