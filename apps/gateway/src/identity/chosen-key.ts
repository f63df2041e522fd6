import type { Setting } from "@millwright/config";

const LENGTH_MIN = 16;
const LENGTH_MAX = 200;
const DIFFERENT_MIN = 8;

/**
 * Setting for a key that the operator chooses instead of a generated one. Only plain hashes of keys are stored, which
 * is safe for random keys only, so a short or repetitive key is rejected.
 */
export const chosenKey = (name: string): Setting<string | undefined> => ({
  name,
  read(text) {
    if (text === undefined || text === "") return { value: undefined };
    const isStrong =
      text.length >= LENGTH_MIN &&
      text.length <= LENGTH_MAX &&
      new Set(text).size >= DIFFERENT_MIN &&
      /^[\x21-\x7e]+$/.test(text);
    if (isStrong) return { value: text };
    const form = `${LENGTH_MIN} to ${LENGTH_MAX} printable ASCII characters without spaces, at least ${DIFFERENT_MIN} of them different`;
    return { fault: `is too weak: it must have ${form}, for instance the output of "openssl rand -hex 24"` };
  },
});
