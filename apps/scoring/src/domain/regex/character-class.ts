/** Whether a code point is meant. */
export type CharacterTest = (code: number) => boolean;

type Read = { readonly test: CharacterTest; readonly end: number } | { readonly error: string };
type Member = { readonly test: CharacterTest; readonly end: number; readonly code?: number };

const CONTROLS: { readonly [letter: string]: number } = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7 };
const CODE = /^\\(?:x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4}))/;
const PROPERTY = /^\\([pP])(?:([A-Z])|\{([A-Z][A-Za-z_=]{0,40})\})/;

const isDigit: CharacterTest = (code) => code >= 48 && code <= 57;
const isWord: CharacterTest = (code) => isDigit(code) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95;
const isSpace: CharacterTest = (code) => code === 32 || (code >= 9 && code <= 13);
const CLASSES: { readonly [letter: string]: CharacterTest } = {
  d: isDigit, D: (code) => !isDigit(code), w: isWord, W: (code) => !isWord(code), s: isSpace, S: (code) => !isSpace(code),
};
export const isWordCode: CharacterTest = isWord;

/** Reads the bracket expression that begins at `start`. */
export function readClass(pattern: string, start: number, ignoreCase: boolean): Read {
  let at = start + 1;
  const isNegated = pattern[at] === "^";
  if (isNegated) at += 1;
  const tests: CharacterTest[] = [];
  for (let isFirst = true; isFirst || pattern[at] !== "]"; isFirst = false) {
    if (at >= pattern.length) return { error: "missing ]" };
    const from = readMember(pattern, at);
    if ("error" in from) return from;
    at = from.end;
    if (pattern[at] !== "-" || pattern[at + 1] === "]" || at + 1 >= pattern.length) {
      tests.push(from.test);
      continue;
    }
    const to = readMember(pattern, at + 1);
    if ("error" in to) return to;
    if (from.code === undefined || to.code === undefined || from.code > to.code) return { error: "invalid range in []" };
    const [low, high] = [from.code, to.code];
    tests.push((code) => code >= low && code <= high);
    at = to.end;
  }
  const any: CharacterTest = folded((code) => tests.some((test) => test(code)), ignoreCase);
  return { test: isNegated ? (code) => !any(code) : any, end: at + 1 };
}

/** Reads one character or the escape that begins at `start`. */
export function readEscape(pattern: string, start: number, ignoreCase: boolean): Read {
  const member = readMember(pattern, start);
  return "error" in member ? member : { test: folded(member.test, ignoreCase), end: member.end };
}

function readMember(pattern: string, at: number): Member | { readonly error: string } {
  const code = pattern.codePointAt(at)!;
  if (code !== 92) return exactly(code, at + (code > 0xffff ? 2 : 1));
  const rest = pattern.slice(at);
  const letter = rest[1];
  if (letter === undefined) return { error: "a backslash at the end" };
  const numbered = CODE.exec(rest);
  if (numbered) return readCode(Number.parseInt((numbered[1] ?? numbered[2] ?? numbered[3])!, 16), at + numbered[0].length);
  const property = PROPERTY.exec(rest);
  if (property) return readProperty(property, at);
  if (CLASSES[letter]) return { test: CLASSES[letter], end: at + 2 };
  if (CONTROLS[letter] !== undefined) return exactly(CONTROLS[letter], at + 2);
  if (/^[1-9]$/.test(letter) || letter === "k") return { error: "back-references are not supported" };
  if (isWord(letter.charCodeAt(0))) return { error: `unknown escape \\${letter}` };
  const escaped = pattern.codePointAt(at + 1)!;
  return exactly(escaped, at + (escaped > 0xffff ? 3 : 2));
}

const readCode = (code: number, end: number): Member | { readonly error: string } =>
  code > 0x10ffff ? { error: "a code point above 10FFFF" } : exactly(code, end);

function readProperty([text, letter, short, long]: RegExpExecArray, at: number): Member | { readonly error: string } {
  try {
    const property = new RegExp(`^\\${letter}{${short ?? long}}$`, "u");
    return { test: (code) => property.test(String.fromCodePoint(code)), end: at + text.length };
  } catch {
    return { error: `unknown property ${text}` };
  }
}

const exactly = (code: number, end: number): Member => ({ test: (other) => other === code, end, code });

/** Also matches the other case of a character. */
function folded(test: CharacterTest, ignoreCase: boolean): CharacterTest {
  if (!ignoreCase) return test;
  return (code) => {
    if (test(code)) return true;
    const text = String.fromCodePoint(code);
    return [text.toLowerCase(), text.toUpperCase()].some((other) => test(other.codePointAt(0)!));
  };
}
