/** What stands where a secret was. */
const MASK = "***";
/** Shorter values would blot out ordinary text. */
const LENGTH_MIN = 4;
const LINE_LENGTH_MIN = 16;
/** Of an encoded value: shorter ones are met by chance. */
const ENCODED_LENGTH_MIN = 8;
/** Where `base64` breaks its lines. */
const BASE64_LINE = 76;

/**
 * How secrets may be spelled in an output: as they are, line by line, in JSON, in a URL, in hexadecimal, and in base64, alone or as a part of
 * something longer. Longest first, so that one which contains another is replaced whole.
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

/** Masks a stream of bytes: what may be the beginning of a secret is held back until the next bytes tell. */
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

  /** What can be let go of now. */
  push(chunk: Uint8Array): Uint8Array {
    if (!this.#pattern) return chunk;
    this.#buffered += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    return this.#release(this.#pattern, this.#buffered.length - this.#begun());
  }

  /** The rest. */
  end(): Uint8Array {
    return this.#pattern ? this.#release(this.#pattern, this.#buffered.length) : new Uint8Array();
  }

  /** How much of the end may be the beginning of a secret, of whichever most. What begins before that is seen whole. */
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

  /** Masks what begins before `limit`. */
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

/** Lines of a secret that has several: a key may be shown indented, or in part. Short ones may be anybody's. */
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
  return encoded.filter((one) => one !== secret && one.length >= ENCODED_LENGTH_MIN);
}

/** What is sure to stand in base64 wherever the bytes begin within a group of three; and the lines of a long one by itself. */
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
    return undefined; // half of a character
  }
}
