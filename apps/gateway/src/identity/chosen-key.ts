const LENGTH_MIN = 16;
const LENGTH_MAX = 200;
const DIFFERENT_MIN = 8;

/**
 * Options of a setting for a key that the operator chooses instead of a generated one. Only plain hashes of keys are
 * stored, which is safe for random keys only, so a short or repetitive key is rejected.
 */
export const chosenKey = {
  secret: true,
  allowed:
    `${LENGTH_MIN} to ${LENGTH_MAX} printable ASCII characters without spaces, at least ${DIFFERENT_MIN} of them ` +
    'different, such as the output of "openssl rand -hex 24"',
  parse(text: string): string {
    if (text.length < LENGTH_MIN || text.length > LENGTH_MAX) throw new Error(`it has ${text.length} characters`);
    if (!/^[\x21-\x7e]+$/.test(text)) throw new Error("it has a space or a character outside ASCII");
    const different = new Set(text).size;
    if (different < DIFFERENT_MIN) throw new Error(`it has only ${different} different characters`);
    return text;
  },
} as const;
