/** The replacement of a secret. */
const MASK = "***";
/** Shorter values are not masked, because they would also match ordinary text. */
const LENGTH_MIN = 4;
const LINE_LENGTH_MIN = 16;
/** The minimum length of an encoded secret; shorter ones match by coincidence. */
const ENCODED_LENGTH_MIN = 8;
/** The line length of `base64`. */
const BASE64_LINE = 76;

/**
 * Returns the forms in which secrets may appear in an output: verbatim, line by line, in JSON, in a URL, in
 * hexadecimal, and in base64 (alone or within a longer value). The longest come first, so that a form that contains
 * another one is replaced completely.
 */
export function spellingsOf(secrets: readonly string[]): readonly string[] {
  const spelled = secrets
    .filter((secret) => secret.length >= LENGTH_MIN)
    .flatMap((secret) => [secret, ...linesOf(secret), ...encodedOf(secret)]);
  return [...new Set(spelled)].sort((a, b) => b.length - a.length);
}

export function maskText(text: string, spellings: readonly string[]): string {
  let masked = text;
  for (const spelling of spellings) if (masked.includes(spelling)) masked = masked.replaceAll(spelling, MASK);
  return masked;
}

/**
 * Masks secrets in a byte stream. Bytes that may be the beginning of a secret are buffered until the next bytes arrive.
 */
export class StreamMasker {
  readonly #pattern: RegExp | undefined;
  readonly #spellings: readonly string[];
  #buffered = "";

  constructor(secrets: readonly string[]) {
    const spellings = spellingsOf(secrets).map((spelling) => Buffer.from(spelling).toString("latin1"));
    this.#pattern =
      spellings.length === 0
        ? undefined
        : new RegExp(spellings.map((spelling) => spelling.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "g");
    this.#spellings = spellings;
  }

  /** Returns the bytes that can be released now. */
  push(chunk: Uint8Array): Uint8Array {
    if (!this.#pattern) return chunk;
    this.#buffered += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    return this.#release(this.#pattern, this.#buffered.length - this.#begun());
  }

  /** Returns the remaining bytes. */
  end(): Uint8Array {
    return this.#pattern ? this.#release(this.#pattern, this.#buffered.length) : new Uint8Array();
  }

  /**
   * Returns the length of the longest suffix that may be the beginning of a secret. Any secret that starts before it is
   * complete.
   */
  #begun(): number {
    const buffered = this.#buffered;
    const last = buffered.charCodeAt(buffered.length - 1);
    let most = 0;
    for (const spelling of this.#spellings) {
      for (let length = Math.min(spelling.length - 1, buffered.length); length > most; length -= 1) {
        if (spelling.charCodeAt(length - 1) === last && buffered.endsWith(spelling.slice(0, length))) most = length;
      }
    }
    return most;
  }

  /** Masks and returns everything that starts before `limit`. */
  #release(pattern: RegExp, limit: number): Uint8Array {
    let [released, done] = ["", 0];
    pattern.lastIndex = 0;
    for (let match = pattern.exec(this.#buffered); match && match.index < limit; match = pattern.exec(this.#buffered)) {
      released += this.#buffered.slice(done, match.index) + MASK;
      done = pattern.lastIndex;
    }
    const end = Math.max(done, limit);
    released += this.#buffered.slice(done, end);
    this.#buffered = this.#buffered.slice(end);
    return Buffer.from(released, "latin1");
  }
}

/**
 * Returns the lines of a multi-line secret, because a key may be printed indented or in part. Short lines are omitted,
 * because they also match ordinary text.
 */
const linesOf = (secret: string): string[] =>
  secret.includes("\n")
    ? secret
        .split(/\r?\n/)
        .map((line) => line.trim())
        .filter((line) => line.length >= LINE_LENGTH_MIN)
    : [];

function encodedOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const url = attempt(() => encodeURIComponent(secret)) ?? secret;
  const hex = bytes.toString("hex");
  const encoded = [
    JSON.stringify(secret).slice(1, -1),
    url,
    url.replaceAll("%20", "+"),
    url.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    hex,
    hex.toUpperCase(),
    ...base64Of(bytes),
  ];
  return encoded.filter((encoding) => encoding !== secret && encoding.length >= ENCODED_LENGTH_MIN);
}

/**
 * Returns the base64 text that certainly appears for the three possible offsets of the bytes within a group of three,
 * and the separate lines of a long value.
 */
function base64Of(bytes: Buffer): string[] {
  const parts = [0, 1, 2].map((shift) => {
    const whole = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    return whole.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
  });
  const alone = parts[0] ?? "";
  const lines =
    alone.length > BASE64_LINE ? (alone.match(new RegExp(`.{${LINE_LENGTH_MIN},${BASE64_LINE}}`, "g")) ?? []) : [];
  return [...parts, ...lines].flatMap((part) => [part, part.replaceAll("+", "-").replaceAll("/", "_")]);
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined; // an unpaired surrogate
  }
}
